import { script } from './scripts.ts';

/** Passes for `magick -script -`: it takes arguments from standard input; one that starts with a dot is a shell script. */
export function scriptReader(): Promise<string> {
  return script(
    'magick',
    `while read -r line; do
  case "$line" in
    *"-print 'imagemill: done"*) printf 'imagemill: done\\n' ;;
    "'. "*) line="\${line#?}"; eval "\${line%?}" ;;
  esac
done`,
  );
}
