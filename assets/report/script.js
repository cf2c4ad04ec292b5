// Filters and sliders of a regression report. Without JavaScript, the report shows all findings.
(() => {
  const findings = [...document.querySelectorAll('.finding')];
  const chips = [...document.querySelectorAll('.chip')];
  const fields = [...document.querySelectorAll('.filters select, .filters input')];
  const field = (name) => fields.find((one) => one.name === name);

  const fits = ({ dataset }, verdicts) =>
    verdicts.includes(dataset.verdict) &&
    fields.every(({ name, value }) => {
      if (value === '') return true;
      if (name === 'text') return dataset.text.includes(value.toLowerCase());
      if (name === 'kinds') return dataset.kinds.split(' ').includes(value);
      return dataset[name] === value;
    });

  const filter = () => {
    const verdicts = chips.filter((chip) => chip.ariaPressed === 'true').map((chip) => chip.dataset.verdict);
    let shown = 0;
    for (const finding of findings) {
      finding.hidden = !fits(finding, verdicts);
      if (!finding.hidden) shown += 1;
    }
    document.querySelector('.nothing').hidden = shown > 0;
    document.querySelector('.count').value = `${shown} of ${findings.length}`;
  };

  for (const chip of chips) {
    chip.addEventListener('click', () => {
      chip.ariaPressed = String(chip.ariaPressed !== 'true');
      filter();
    });
  }
  for (const one of fields) one.addEventListener('input', filter);
  const pick = (name, value) => {
    field(name).value = value;
    filter();
    document.querySelector('.filters').scrollIntoView();
  };
  for (const link of document.querySelectorAll('.link')) {
    link.addEventListener('click', () => {
      if (link.dataset.pickCase) pick('case', link.dataset.pickCase);
      else pick('kinds', link.dataset.pickKind);
    });
  }

  for (const figure of document.querySelectorAll('.slide')) {
    const stage = figure.querySelector('.stage');
    const range = figure.querySelector('input');
    const split = () => stage.style.setProperty('--split', `${range.value}%`);
    const follow = (event) => {
      if (event.type === 'pointermove' && event.buttons !== 1) return;
      const { left, width } = stage.getBoundingClientRect();
      range.value = String(((event.clientX - left) / width) * 100);
      split();
    };
    range.addEventListener('input', split);
    stage.addEventListener('pointerdown', follow);
    stage.addEventListener('pointermove', follow);
  }

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName))
      return;
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const seen = findings.filter((finding) => !finding.hidden);
    const at = seen.indexOf(document.activeElement?.closest('.finding'));
    const next = seen[at < 0 ? 0 : Math.max(0, Math.min(seen.length - 1, at + step))];
    next?.focus();
    next?.scrollIntoView({ block: 'start' });
  });

  filter();
})();
