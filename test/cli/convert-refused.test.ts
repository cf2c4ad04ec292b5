import { expect } from 'chai';
import { useConvertFolder } from '../helpers/convert-folder.ts';

const PRESETS = `presets:
  - { name: card, format: jpg, width: 60 }
  - { name: auto, format: auto }
`;

/** Arguments, separated by spaces, and the start of the message. */
const REFUSED: Readonly<Record<string, string>> = {
  // The format, and -o.
  'a.jpg -o b.webp --format JXL':
    'Invalid --format "JXL": expected one of webp, png, jpg, gif, bmp, pdf, ico, smallest: EXTRA_OUTPUTS does not enable jxl.',
  'a.jpg -o b.tif':
    '-o b.tif has an unknown extension (not one of webp, png, jpg, gif, bmp, pdf, ico: EXTRA_OUTPUTS does not enable tiff): set --format, or end a folder with a slash.',
  'a.jpg -o b': '-o b has no extension: set --format, or end a folder with a slash.',
  'a.jpg -o b.png -f webp': '-o b.png and --format webp contradict each other.',
  'a.jpg b.jpg -o c.png': '-o c.png is one file, for several inputs: a folder ends with a slash.',
  'a.jpg -o one.png --pages 1-2': '-o one.png takes one result, and there are 2 of each file',
  // As with a variable of the shell that is not set.
  'a.jpg b.jpg -o ': '-o is empty: name a file or a folder, or use - for standard output.',
  // Options of the image.
  'a.jpg -o b.webp --rapid': "unknown option '--rapid'",
  'a.jpg -o b.webp -q 0': 'Invalid --quality "0": expected a whole number from 1 to 100, or auto.',
  'a.jpg -o b.png --pages 3-1': 'Invalid --pages "3-1": expected all or first, or numbers',
  'a.jpg -o b.png --width half%': 'Invalid --scale "half"',
  'a.jpg -o b.png --width 50% --height 20': 'A size in percent, such as 50%, is the only size of a result.',
  'a.jpg -o b.webp --lossless --max-bytes 1000': '--lossless and --max-bytes contradict each other.',
  'a.jpg -o b.webp --keep-metadata --metadata none': '--keep-metadata and --metadata contradict each other.',
  // Limits of this machine.
  'a.jpg -o b.webp --max-file-size huge': 'Invalid --max-file-size "huge": expected a number, such as 50M or',
  'a.jpg -o b.webp --max-pixels 0': 'Invalid --max-pixels "0"',
  'a.jpg -o b.webp --max-pixels 5M --url http://localhost:1':
    '--max-file-size and --max-pixels are for this machine',
  // Names of results.
  '. -o out --name ../{name}': 'Invalid --name "../{name}": A name cannot contain / or \\.',
  '. -o out --name {date}': 'Invalid --name "{date}": {date} is unknown',
  '. -o out --update --name {width}': '--name with {width}, {height} or {number} is not possible with',
  '. -o out --shard 1/2 --name {name}-{number}':
    '--name with {width}, {height} or {number} is not possible with',
  'a.jpg -o b.webp --name c': '--name needs a folder for -o: with a file, -o is its name.',
  // Many files.
  '. -o out --delete': '--delete requires --yes without a terminal, because it cannot ask for confirmation.',
  '. -o out --dry-run --watch': '--dry-run and --watch contradict each other.',
  '. -o out --shard 5/4': '--shard 5/4 is out of range: the parts are numbered 1 to 4.',
  '. -o out --shard 0/4': '--shard 0/4 is out of range: the parts are numbered 1 to 4.',
  '. -o out --shard 1': 'Invalid --shard "1": expected I/N, such as 1/4, with N up to 10000.',
  '. -o out --url localhost:3000':
    'Invalid --url "localhost:3000": expected an address such as http://host:3000.',
  '. -o out --url http://127.0.0.1:1': 'no imagemill server responds at http://127.0.0.1:1/api/v1: bad port',
  '. -o out --report none/report.csv':
    '--report none/report.csv cannot be written: no such file or directory.',
  // Presets.
  '. -o out --preset card': '--preset needs --presets or PRESETS_FILE with a file.',
  '. -o out --presets presets.yaml': '--presets needs --preset with the name of a preset.',
  '. -o out --preset x --presets presets.yaml': 'Invalid preset "x": expected one of card, auto.',
  '. -o out --preset x --presets none.yaml': '--presets none.yaml cannot be read: no such file or directory',
  '. -o out --preset a --presets broken.yaml': '--presets broken.yaml:2: preset "a": Invalid width "none"',
  '. -o out --preset auto --presets presets.yaml':
    'Preset "auto" leaves the format to browsers (auto): use another',
  '. -o out --preset card --url http://localhost:1':
    '--preset with --url needs --format: only the instance knows',
  '. -o out --preset card --url http://localhost:1 --presets x': '--presets is for this machine',
  // The format of each result is chosen.
  '. -o b.webp -f smallest': '-o b.webp and --format smallest contradict each other.',
  '. -o out -f smallest --update': '--update is not possible with --format smallest: the format of a result',
  '. -o out -f smallest --watch': '--watch is not possible with --format smallest',
  '. -o out -f smallest --shard 1/2': '--shard is not possible with --format smallest',
  '. -o out -f smallest --url http://localhost:1': '--url is not possible with --format smallest',
  '. -o a.pdf -f smallest --combine': '-o a.pdf and --format smallest contradict each other.',
  '. -o out -f smallest --verify visual':
    '--verify visual is not possible: --format smallest is not verified',
  // Results that are not verified.
  '. -o out -f png --verify exactly': 'Invalid --verify "exactly": expected pixels or visual.',
  '. -o out -f png --verify visual --url http://localhost:1': '--verify needs the tools of this machine',
  '. -o out -f webp --verify pixels': '--verify pixels is not possible: WebP is lossy here',
  '. -o out -f jpg --verify pixels': '--verify pixels is not possible: JPEG is lossy here',
  '. -o out -f ico --verify visual': '--verify visual is not possible: --format ico is not verified',
  '. -o out -f pdf --verify visual': '--verify visual is not possible: --format pdf is not verified',
  '. -o out -f png --pages 2 --verify pixels': '--verify pixels is not possible: --pages with numbers',
  '. -o out -f png --width 10 --verify pixels': '--verify pixels is not possible: --width changes every',
  '. -o out -f png --width 10 --height 10 --fit cover --verify visual':
    '--verify visual is not possible: --fit is not verified',
  '. -o out -f png --crop 0,0,9,9 --verify visual': '--verify visual is not possible: --crop is not verified',
  '. -o out -f png --width 10 --enlarge --verify visual':
    '--verify visual is not possible: --enlarge is not verified',
};

describe('imagemill convert exits with 2, names the reason and writes nothing for', () => {
  const folder = useConvertFolder();
  beforeEach(async () => {
    await folder.put('scene.jpg', 'a.jpg');
    await folder.write('presets.yaml', PRESETS);
    await folder.write('broken.yaml', 'presets:\n  - { name: a, width: none }\n');
  });

  for (const [args, message] of Object.entries(REFUSED))
    it(args, async () => {
      const { outcome } = await folder.run(args.split(' '), { env: { EXTRA_OUTPUTS: 'ico' } });
      expect(outcome.slice(0, 13 + message.length)).to.equal(`2 imagemill: ${message}`);
      expect(await folder.files()).to.deep.equal(['a.jpg', 'broken.yaml', 'presets.yaml']);
    });
});
