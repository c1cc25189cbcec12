// The subcommands of git that only read, with the options under which they neither write nor start programs.

import type { Argument } from '../words/types.ts'
import { mayBeSecret } from './environment.ts'
import { type Call, optionList, readOptions } from './options.ts'

const DIFF =
  '-pusaRbwMCzW -U? -S: -G: -l: --patch --no-patch --unified? --stat? --numstat --shortstat --dirstat? --summary --compact-summary --name-only --name-status --color? --no-color --color-words? --word-diff? --word-diff-regex: --color-moved? --check --full-index --abbrev? --find-renames? --find-copies? --no-renames --diff-filter: --pickaxe-regex --pickaxe-all --relative? --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-matching-lines: --function-context --inter-hunk-context: --submodule? --ignore-submodules? --src-prefix: --dst-prefix: --no-prefix --minimal --patience --histogram --diff-algorithm: --raw --binary --exit-code --quiet --no-ext-diff --no-textconv --cached --staged --merge-base --cc -c -m --combined-all-paths --indent-heuristic --no-indent-heuristic'

const LOG = `${DIFF} -# -n: -g -i -E -F -P -L: --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --remove-empty --merges --no-merges --first-parent --min-parents: --max-parents: --all --branches? --tags? --remotes? --glob: --exclude: --reflog --boundary --simplify-by-decoration --full-history --dense --sparse --simplify-merges --ancestry-path --topo-order --date-order --author-date-order --reverse --graph --oneline --pretty? --format: --abbrev-commit --no-abbrev-commit --decorate? --no-decorate --decorate-refs: --date: --relative-date --parents --children --left-right --cherry --cherry-pick --cherry-mark --follow --source --notes? --no-notes --walk-reflogs --show-pulls --count --left-only --right-only --encoding: --expand-tabs? --no-expand-tabs --shortstat --quiet --log-size --no-walk? --do-walk --diff-merges: --no-diff-merges`

interface Subcommand {
  readonly options: string
  /** Operands that are not revisions or paths but make something new. */
  readonly operands?: 'none'
  readonly check?: (call: Call) => boolean
}

const has = ({ options }: Call, names: string): boolean => options.some((it) => names.split(' ').includes(it.name))
const texts = ({ operands }: Call): string => operands.map((it) => it.value ?? '\0').join(' ')
/** Signatures are checked by a program that the configuration names. */
const noSignature = (call: Call): boolean =>
  !call.options.some(
    (it) =>
      /^--(format|pretty)$/.test(it.name) &&
      (it.value?.value === undefined ? it.value !== undefined : /%G|signature/.test(it.value.value)),
  )

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  status: {
    options:
      '-sbvzu? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored? --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?',
  },
  log: { options: LOG },
  show: { options: LOG },
  whatchanged: { options: LOG },
  'rev-list': { options: LOG },
  shortlog: {
    options: `${LOG} -sne -c --summary --numbered --email --group:`,
  },
  diff: { options: DIFF },
  'diff-tree': { options: `${DIFF} -r -t -v --root --no-commit-id --pretty? --format: --stdin` },
  'diff-index': { options: DIFF },
  'diff-files': { options: DIFF },
  'range-diff': { options: DIFF },
  blame: {
    options:
      '-bcefklnpstwMC -L: --porcelain --line-porcelain --incremental --root --show-stats --date: --since: --reverse --first-parent --show-email --show-name --show-number --abbrev? --color-lines --color-by-age --progress',
  },
  annotate: { options: '-l -t -L:' },
  grep: {
    options:
      '-aIiwvhHElGFPncoqzWpr -# -A: -B: -C: -e: -m: --cached --text --ignore-case --word-regexp --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --files-without-match --null --only-matching --count --color? --no-color --break --heading --show-function --function-context --context: --after-context: --before-context: --max-depth: --max-count: --recursive --no-recursive --and --or --not --all-match --quiet -L',
  },
  'ls-files': {
    options:
      '-cdmoisktuvzf -x: --cached --deleted --modified --others --ignored --stage --killed --unmerged --directory --no-empty-directory --eol --exclude: --exclude-standard --error-unmatch --full-name --abbrev? --recurse-submodules --deduplicate --format:',
  },
  'ls-tree': {
    options: '-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format:',
  },
  'cat-file': { options: '-p -t -s -e' },
  'rev-parse': {
    options:
      '-q --verify --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-superproject-working-tree --show-object-format? --all --branches? --tags? --remotes? --since: --until: --path-format: --git-path@',
  },
  describe: {
    options:
      '--all --tags --long --always --dirty? --broken? --abbrev? --candidates: --exact-match --contains --match: --exclude: --first-parent --debug',
  },
  'name-rev': { options: '--tags --refs: --exclude: --all --name-only --always --no-undefined' },
  'merge-base': { options: '-a --all --octopus --is-ancestor --fork-point --independent' },
  'show-ref': { options: '-dhqs --head --heads --branches --tags --dereference --hash? --abbrev? --verify --quiet' },
  'show-branch': {
    options: '-a -r --all --remotes --topo-order --date-order --list --more? --sha1-name --no-name --current --topics',
  },
  'for-each-ref': {
    options:
      '--count: --sort: --format: --points-at: --merged? --no-merged? --contains? --no-contains? --ignore-case --omit-empty --exclude:',
  },
  'count-objects': { options: '-vH --verbose --human-readable', operands: 'none' },
  cherry: { options: '-v --abbrev?' },
  'check-ignore': { options: '-qvzn --quiet --verbose --non-matching --no-index' },
  'check-attr': { options: '-az --all --cached' },
  'check-ref-format': { options: '--branch --allow-onelevel --normalize' },
  var: { options: '', check: (call) => /^GIT_(AUTHOR_IDENT|COMMITTER_IDENT|DEFAULT_BRANCH)$/.test(texts(call)) },
  version: { options: '--build-options', operands: 'none' },
  branch: {
    options:
      '-arvl -vv --all --remotes --list --verbose --show-current --merged? --no-merged? --contains? --no-contains? --points-at: --sort: --format: --column? --no-column --color? --no-color --abbrev? --no-abbrev --ignore-case -i',
    check: (call) =>
      call.operands.length === 0 || has(call, '--list --merged --no-merged --contains --no-contains --points-at'),
  },
  tag: {
    options:
      '-l -n? --list --sort: --format: --contains? --no-contains? --merged? --no-merged? --points-at? --column? --no-column --color? --ignore-case -i',
    check: (call) =>
      call.operands.length === 0 || has(call, '-l --list --contains --no-contains --merged --no-merged --points-at'),
  },
  remote: { options: '-v --verbose --all --push', check: (call) => /^(|get-url \S+)$/.test(texts(call)) },
  stash: {
    options: `${LOG} -u --include-untracked --only-untracked`,
    check: (call) => /^(list|show)( |$)/.test(texts(call)),
  },
  reflog: {
    options: LOG,
    check: (call) => call.operands.length === 0 || !/^(expire|delete|drop|write)( |$)/.test(texts(call)),
  },
  worktree: { options: '-vz --porcelain --verbose', check: (call) => texts(call) === 'list' },
  notes: { options: '', check: (call) => /^(|list|list \S+|show|show \S+)$/.test(texts(call)) },
  submodule: { options: '', check: (call) => /^(|status)$/.test(texts(call)) },
  bisect: { options: '', check: (call) => /^(log)$/.test(texts(call)) },
  config: {
    options:
      '--get --get-all --global --local --system --worktree --show-origin --show-scope --null --type: --default: --bool --int --path --includes --no-includes',
    check: (call) => {
      const [, key] = /^(?:get )?([\w-]+\.\S+)$/.exec(texts(call)) ?? []
      // A list of all settings, or a header of requests, may hold a token.
      return key !== undefined && !/header|helper|cookie|insteadof/i.test(key) && !mayBeSecret(key)
    },
  },
  'symbolic-ref': { options: '-q --short --quiet', check: (call) => call.operands.length === 1 },
}

const GLOBAL = optionList(
  '-C: -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch',
)

export interface GitCall {
  readonly subcommand: string
  /** Folders of `-C`, to be entered one after the other. */
  readonly folders: readonly Argument[]
  /** Revisions and paths. */
  readonly operands: readonly Argument[]
  readonly paths: readonly Argument[]
  /** It shows addresses of remotes, or settings that may hold one. */
  readonly showsRemotes: boolean
}

/** Takes a call of git apart, or says why it is more than reading. */
export function readGit(words: readonly Argument[]): GitCall | { readonly problem: string } {
  if (words.length === 1 && /^(--version|-v)$/.test(words[0]!.value ?? ''))
    return { subcommand: 'version', folders: [], operands: [], paths: [], showsRemotes: false }
  const outer = readOptions(words, GLOBAL, { permute: false })
  if ('problem' in outer) return { problem: outer.problem }
  const [name, ...rest] = outer.operands
  if (name?.value === undefined) return { problem: 'The subcommand is not known.' }
  const known = Object.hasOwn(SUBCOMMANDS, name.value) ? SUBCOMMANDS[name.value] : undefined
  if (known === undefined) return { problem: `git ${name.value} does more than read, or is not known.` }
  const call = readOptions(rest, lists(name.value, known.options))
  if ('problem' in call) return { problem: call.problem }
  if ((known.operands === 'none' && call.operands.length > 0) || known.check?.(call) === false || !noSignature(call))
    return { problem: `This use of git ${name.value} does more than read, or is not known.` }
  return {
    subcommand: name.value,
    folders: outer.options.filter((it) => it.name === '-C').map((it) => it.value!),
    operands: operandsOf(name.value, call, rest),
    paths: call.paths,
    showsRemotes: name.value === 'remote' || (name.value === 'config' && /url/i.test(texts(call))),
  }
}

/**
 * What may name files. `git diff` compares files that git does not hold, so there even the value of an option is looked
 * at: another version may take it for an operand. The pattern of `git grep` is none.
 */
function operandsOf(name: string, { options, operands }: Call, rest: readonly Argument[]): readonly Argument[] {
  if (name.includes('diff')) return rest.filter((it) => !it.prefix.startsWith('-'))
  if (name === 'grep' && !options.some((it) => it.name === '-e')) return operands.slice(1)
  return operands
}

const read = new Map<string, ReturnType<typeof optionList>>()
const lists = (name: string, options: string): ReturnType<typeof optionList> => {
  const known = read.get(name) ?? optionList(options)
  read.set(name, known)
  return known
}
