// Everyday commands that only read, with exactly the options under which that is true. What is not in this table is not
// thought to be harmful; it is asked about. Rows are data; what needs more than a list of options has a `check`.

import type { Argument } from '../words/types.ts'
import { checkAwk } from './awk.ts'
import { checkFind } from './find.ts'
import type { Call } from './options.ts'
import { checkSed } from './sed.ts'
import {
  checkDate,
  checkFormat,
  checkIp,
  checkJq,
  checkNumber,
  checkPlainNames,
  checkProcesses,
  checkRead,
  checkSet,
  checkShownVariables,
  checkTest,
  checkTop,
} from './small.ts'

/** The kind of the operands. Reading a file's content is more than learning its name, size and kind. */
export type Operands =
  | 'none'
  /** Never opened. */
  | 'text'
  /** Never opened, and neither an option nor their number matters. */
  | 'anything'
  /** Opened and shown. */
  | 'files'
  /** Only looked at from outside. */
  | 'names'
  /** A pattern, then files. */
  | 'pattern and files'

export interface ReadOnlyCommand {
  readonly names: string
  /** See `optionList`. */
  readonly options?: string
  readonly operands: Operands
  /** Operands beyond this number are something else, as the output of `uniq`. */
  readonly most?: number
  /** Options that replace the pattern operand. */
  readonly pattern?: string
  /** Options with which whole folders are read, and those with which links in them are followed. `*`: always. */
  readonly recursive?: string
  readonly follows?: string
  /**
   * A search that leaves out hidden and ignored files, unless one of these options is given, or a glob that includes.
   */
  readonly everything?: string
  /** Takes the arguments before any other rule is applied to them. */
  readonly raw?: (words: readonly Argument[]) => string | readonly Argument[]
  /**
   * Says what is wrong with a call whose options are all known. Returns the operands that are files, if they differ.
   */
  readonly check?: (call: Call) => string | readonly Argument[] | undefined
}

function subcommand(allowed: RegExp): (call: Call) => string | undefined {
  return ({ operands }) =>
    allowed.test(operands.map((it) => it.value ?? '\0').join(' '))
      ? undefined
      : 'This sub-command does more than list, or is not known.'
}

export const READ_ONLY: readonly ReadOnlyCommand[] = [
  // Names, sizes and kinds of files.
  {
    names: 'ls dir vdir',
    options:
      '-aAbBcCdfFgGhikklmnNopqQrRsStuUvxXZ1 -I@ -T@ -w@ --all --almost-all --author --color? --directory --classify? --file-type --format: --full-time --group-directories-first --human-readable --si --ignore: --hide: --inode --numeric-uid-gid --literal --quote-name --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --block-size:',
    operands: 'names',
  },
  {
    names: 'eza exa',
    options:
      '-1aldhrRTDFgiSHUmu -L: -s: --all --long --tree --level: --git --icons --no-icons --sort: --color? --group-directories-first --oneline --only-dirs',
    operands: 'names',
  },
  {
    names: 'tree',
    options:
      '-adfihsDpugrtcCnFAQN1 -L: -I: -P: --dirsfirst --filesfirst --noreport --charset: --prune --matchdirs --ignore-case --du --si --gitignore --sort? -J -X',
    operands: 'names',
  },
  { names: 'stat', options: '-tx -c: -f@ --format: --printf: --terse', operands: 'names' },
  {
    names: 'file',
    options: '-bikNnprsE0 --brief --mime --mime-type --mime-encoding --no-dereference -h',
    operands: 'names',
  },
  {
    names: 'du',
    options:
      '-abchkmsxS0 -d: -t: --all --apparent-size --bytes --total --human-readable --max-depth: --summarize --one-file-system --exclude: --block-size: --si --threshold: --separate-dirs --inodes --time? -B: -I:',
    operands: 'names',
  },
  {
    names: 'df',
    options:
      '-ahHiklmPT -t: -x: -B: --all --human-readable --inodes --local --portability --print-type --total --output? --type: --exclude-type: --si --block-size:',
    operands: 'names',
  },
  {
    names: 'realpath readlink',
    options:
      '-efmnqsLPvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --strip --no-symlinks --relative-to@ --relative-base@',
    operands: 'names',
  },
  { names: 'basename dirname', options: '-a -s: -z --multiple --suffix: --zero', operands: 'text' },
  { names: 'find', raw: checkFind, operands: 'names' },
  {
    names: 'fd fdfind',
    options:
      '-aHIsiFgp0l1 -e: -t: -d: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs --case-sensitive --ignore-case --glob --fixed-strings --absolute-path --full-path --extension: --type: --max-depth: --min-depth: --exact-depth: --exclude: --size: --changed-within: --changed-before: --color: --max-results: --print0',
    operands: 'pattern and files',
  },

  // Contents of files.
  {
    names: 'cat',
    options: '-AbeEnstTuv --number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank',
    operands: 'files',
  },
  {
    names: 'bat batcat',
    options:
      '-pnAu -r: -l: --plain --number --show-all --style: --line-range: --color: --language: --paging: --decorations: --wrap:',
    operands: 'files',
  },
  { names: 'head', options: '-qvz -n: -c: -# --lines: --bytes: --quiet --silent --verbose', operands: 'files' },
  {
    names: 'tail',
    options:
      '-qvzfFr -n: -c: -s: -# --lines: --bytes: --quiet --silent --verbose --follow? --retry --pid: --sleep-interval:',
    operands: 'files',
  },
  { names: 'wc', options: '-clmwL --bytes --chars --lines --words --max-line-length --total:', operands: 'files' },
  {
    names: 'nl',
    options:
      '-b: -f: -h: -i: -l: -n: -s: -v: -w: -d: -p --body-numbering: --number-width: --number-format: --starting-line-number:',
    operands: 'files',
  },
  { names: 'tac rev', options: '-b -r -s:', operands: 'files' },
  {
    names: 'cut',
    options:
      '-b: -c: -d: -f: -n -s -z --bytes: --characters: --delimiter: --fields: --only-delimited --complement --output-delimiter: --zero-terminated',
    operands: 'files',
  },
  { names: 'paste', options: '-sz -d: --delimiters: --serial', operands: 'files' },
  {
    names: 'join',
    options: '-i -1: -2: -a: -e: -j: -o: -t: -v: --header --check-order --nocheck-order',
    operands: 'files',
  },
  { names: 'comm', options: '-123z --check-order --nocheck-order --output-delimiter: --total', operands: 'files' },
  {
    names: 'sort',
    options:
      '-bdfghiMmnRrsuVzcC -k: -t: -S: --key: --field-separator: --numeric-sort --human-numeric-sort --general-numeric-sort --version-sort --reverse --unique --stable --ignore-case --ignore-leading-blanks --dictionary-order --month-sort --check? --zero-terminated --merge',
    operands: 'files',
  },
  {
    names: 'uniq',
    options:
      '-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --group? --ignore-case --unique --skip-fields: --skip-chars: --check-chars: --zero-terminated',
    operands: 'files',
    most: 1,
  },
  { names: 'tr', options: '-cCdst --complement --delete --squeeze-repeats --truncate-set1', operands: 'text' },
  { names: 'fold fmt', options: '-bcstu -w: -# --bytes --spaces --width: --uniform-spacing', operands: 'files' },
  { names: 'expand unexpand', options: '-ai -t: --tabs: --initial --all', operands: 'files' },
  {
    names: 'column',
    options: '-tnexLd -s: -o: -c: -N: -R: -T: -H: --table --separator: --output-separator: --table-columns: --json',
    operands: 'files',
  },
  {
    names: 'diff',
    options:
      '-abBdeEinNpqrstuwyZ -c? -C: -U: -I: -x: -W: -F: -L: --brief --report-identical-files --unified? --context? --side-by-side --width: --suppress-common-lines --recursive --new-file --text --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --ignore-trailing-space --ignore-matching-lines: --exclude: --color? --label: --minimal --strip-trailing-cr --show-c-function --left-column --no-dereference',
    operands: 'files',
    follows: '*',
  },
  {
    names: 'cmp',
    options: '-bls -i: -n: --print-bytes --verbose --quiet --silent --bytes: --ignore-initial:',
    operands: 'files',
  },
  {
    names: 'md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum md5',
    options: '-btrsqz -a: -l: --binary --text --tag --zero --algorithm: --length:',
    operands: 'files',
  },
  {
    names: 'od',
    options:
      '-abcdfiloxvs -A: -j: -N: -t: -w? --address-radix: --format: --read-bytes: --skip-bytes: --output-duplicates --width?',
    operands: 'files',
  },
  { names: 'hexdump hd', options: '-bcCdovx -n: -s: -e:', operands: 'files' },
  { names: 'xxd', options: '-abeEipur -c: -g: -l: -s: -o:', operands: 'files', most: 1 },
  { names: 'base64 base32', options: '-dDi -w: --decode --ignore-garbage --wrap:', operands: 'files', most: 1 },
  { names: 'iconv', options: '-cls -f: -t: --from-code: --to-code: --list', operands: 'files' },
  { names: 'zcat', options: '-fq', operands: 'files' },
  {
    names: 'unzip',
    raw: (words) =>
      /^-(l|v|Z|Z1|lv|lq|t|tq)$/.test(words[0]?.value ?? '') &&
      words.slice(1).every((it) => it.value !== undefined && !it.value.startsWith('-'))
        ? words.slice(1)
        : 'Only listing an archive reads.',
    operands: 'files',
  },
  { names: 'zipinfo', options: '-1lmsvhtTzZ2', operands: 'files' },
  {
    names: 'tar',
    raw: (words) =>
      /^-?t[vzjJ]*f$/.test(words[0]?.value ?? '') &&
      words.slice(1).every((it) => /^[^-:]/.test(it.value ?? '') && !it.value!.includes(':'))
        ? words.slice(1)
        : 'Only listing an archive (tar -tf FILE) reads.',
    operands: 'files',
  },
  {
    names: 'grep egrep fgrep',
    options:
      '-abcEFGhHiIlLnoPqrRsTUvwxyzZ -A: -B: -C: -m: -e: -# --after-context: --before-context: --context? --count --color? --colour? --extended-regexp --fixed-strings --basic-regexp --perl-regexp --files-with-matches --files-without-match --with-filename --no-filename --ignore-case --no-ignore-case --include: --exclude: --exclude-dir: --invert-match --line-number --line-regexp --word-regexp --max-count: --no-messages --null --null-data --only-matching --quiet --silent --recursive --dereference-recursive --regexp: --text --binary-files: --initial-tab --byte-offset --line-buffered',
    operands: 'pattern and files',
    pattern: '-e --regexp',
    recursive: '-r --recursive',
    follows: '-R --dereference-recursive',
  },
  {
    names: 'rg',
    options:
      '-acFhHiIlLnNopPqsSUuvVwx.0 -A: -B: -C: -e: -E: -g: -j: -m: -M: -r: -t: -T: -d: --after-context: --before-context: --context: --case-sensitive --ignore-case --smart-case --color: --colors: --column --count --count-matches --encoding: --files --files-with-matches --files-without-match --fixed-strings --glob: --iglob: --glob-case-insensitive --heading --no-heading --hidden --no-hidden --invert-match --json --line-number --no-line-number --line-regexp --max-columns: --max-columns-preview --max-count: --max-depth: --max-filesize: --multiline --multiline-dotall --no-config --no-filename --no-ignore --no-ignore-vcs --no-ignore-parent --no-messages --null --only-matching --passthru --pcre2 --quiet --regexp: --replace: --sort: --sortr: --stats --text --threads: --trim --type: --type-not: --type-list --type-add: --unrestricted --vimgrep --with-filename --word-regexp --version --no-follow --one-file-system',
    operands: 'pattern and files',
    pattern: '-e --regexp --files --type-list --version -V',
    recursive: '*',
    follows: '-L',
    everything: '-u -. --hidden --unrestricted --no-ignore --no-ignore-vcs --no-ignore-parent --type-add',
  },
  { names: 'jq gojq', raw: checkJq, operands: 'files' },
  { names: 'awk gawk mawk nawk', raw: checkAwk, operands: 'files' },
  { names: 'sed gsed', raw: checkSed, operands: 'files' },
  { names: 'bc', options: '-lqs --mathlib --quiet --standard', operands: 'files' },

  // Words and numbers.
  { names: 'echo : true false expr [[', operands: 'anything' },
  { names: 'printf', raw: checkFormat, operands: 'anything' },
  { names: 'seq', options: '-w -f: -s: -t: -# --equal-width --format: --separator:', operands: 'text' },
  {
    names: 'factor numfmt',
    options: '--to: --from: --suffix: --field: --format: --padding: --round: --header? -d:',
    operands: 'text',
  },
  { names: 'test', raw: (words) => checkTest(words), operands: 'anything' },
  {
    names: '[',
    raw: (words) => (words.at(-1)?.value === ']' ? checkTest(words.slice(0, -1)) : 'The "]" is missing.'),
    operands: 'anything',
  },

  // The shell itself.
  {
    names: 'cd',
    options: '-LP',
    operands: 'names',
    most: 1,
    check: ({ operands }) =>
      operands.length === 1 && operands[0]!.value !== '-' ? undefined : 'The folder is not written out.',
  },
  { names: 'pwd', options: '-LP', operands: 'none' },
  { names: 'dirs times jobs wait umask', operands: 'none' },
  { names: 'ulimit', options: '-a', operands: 'none' },
  { names: 'exit return break continue sleep', raw: checkNumber, operands: 'text' },
  { names: 'set', raw: checkSet, operands: 'text' },
  { names: 'read', options: '-rs -a: -d: -n: -N: -p: -t: -u:', operands: 'text', check: checkRead },
  { names: 'unset', operands: 'text', check: checkPlainNames },
  { names: 'type', options: '-afptP', operands: 'text' },
  {
    names: 'command',
    options: '-vVp',
    operands: 'text',
    check: ({ options }) =>
      options.some((it) => /^-[vV]$/.test(it.name)) ? undefined : 'The command in it is not known.',
  },
  { names: 'which whereis', options: '-abms', operands: 'text' },

  // The machine.
  {
    names: 'date',
    options: '-ujR -d: -I? -r: --date: --iso-8601? --rfc-3339: --rfc-email --utc --universal',
    operands: 'text',
    check: checkDate,
  },
  { names: 'cal ncal', options: '-13hjmy', operands: 'text' },
  {
    names: 'uname',
    options: '-amnrsvpio --all --kernel-name --kernel-release --machine --nodename --operating-system',
    operands: 'none',
  },
  {
    names: 'arch whoami logname tty nproc uptime w users lscpu sw_vers locale',
    options: '-aps --all --pretty --silent',
    operands: 'none',
  },
  { names: 'hostname', options: '-afIisd --fqdn --short --all-ip-addresses --ip-address', operands: 'none' },
  { names: 'id groups', options: '-agGnruz --group --groups --name --user --real', operands: 'text' },
  { names: 'who last', options: '-abHmqru -n: -#', operands: 'none' },
  { names: 'lsb_release', options: '-acdirs', operands: 'none' },
  { names: 'lsblk', options: '-abdfilmnpSt -o: --all --fs --json --output:', operands: 'none' },
  { names: 'free vmstat', options: '-abghkmstwl -c: --human --mega --giga --total --wide', operands: 'none' },
  { names: 'ps', raw: checkProcesses, operands: 'text' },
  {
    names: 'pgrep pidof',
    options: '-acfilnovx -u: -P: -d: -U: -g: --full --list-name --list-full --newest --oldest --exact',
    operands: 'text',
  },
  { names: 'top', options: '-bHi -n: -p: -u: -o: -w? -l: -d:', operands: 'none', check: checkTop },
  { names: 'lsof', options: '-ablnPRtUVwO -i? -p: -u: -c: -a -d: -s?', operands: 'names' },
  {
    names: 'ss netstat',
    options: '-46aeilmnoprstuwx --all --listening --numeric --processes --tcp --udp --unix --summary',
    operands: 'none',
  },
  { names: 'ip', raw: checkIp, operands: 'text' },
  { names: 'printenv', options: '-0 --null', operands: 'text', check: checkShownVariables },
  {
    names: 'tput',
    operands: 'text',
    most: 1,
    check: ({ operands }) =>
      /^(cols|lines|colors)$/.test(operands[0]?.value ?? '') ? undefined : 'It changes the terminal.',
  },
  { names: 'getconf', options: '-a', operands: 'text' },

  // Managers of packages, containers and services, with the sub-commands that list.
  {
    names: 'npm',
    options: '-aglp --all --depth: --global --json --long --parseable --omit: --include: --production',
    operands: 'text',
    check: subcommand(/^(ls|list|ll|la|root|prefix|explain|why|config (get|list|ls)|pkg get)( [\w@./-]+)*$/),
  },
  {
    names: 'pip pip3',
    options: '-v --format: --user --local',
    operands: 'text',
    check: subcommand(/^(list|freeze|check|show)( [\w.-]+)*$/),
  },
  {
    names: 'docker podman',
    options:
      '-aqnls -f: --all --quiet --filter: --format: --no-trunc --tail: --since: --until: --timestamps --size --latest',
    operands: 'text',
    check: subcommand(/^(ps|images|version|info|logs [\w.-]+|port [\w.-]+|(image|container|network|volume) ls)$/),
  },
  {
    names: 'systemctl',
    options: '-al -n: -t: --no-pager --full --lines: --user --type: --state: --all --failed',
    operands: 'text',
    check: subcommand(/^(status|is-active|is-enabled|is-failed|list-units|list-unit-files|list-timers)( [\w@.:-]+)*$/),
  },
  {
    names: 'journalctl',
    options:
      '-xekrqf -b? -u: -n: -p: -o: --no-pager --unit: --lines: --priority: --output: --quiet --since: --until: --reverse',
    operands: 'none',
  },
]

/** Programs that are only asked for their version, and how. */
export const VERSIONS: readonly (readonly [names: string, words: string])[] = [
  ['node deno bun npm', '--version -v'],
  ['python python3 pip pip3 uv ruff', '--version -V'],
  ['cargo rustc rustup', '--version -V'],
  ['go', 'version'],
  ['java javac', '-version --version'],
  ['ruby perl php lua', '--version -v'],
  ['gcc g++ cc clang clang++ make cmake ninja ld gdb', '--version'],
  ['docker podman', '--version -v'],
  [
    'bash zsh dash curl wget jq rg fd grep sed awk gawk tar ssh openssl sqlite3 psql mysql ffmpeg convert pandoc gh helm',
    '--version',
  ],
  ['ssh', '-V'],
  ['openssl', 'version'],
]
