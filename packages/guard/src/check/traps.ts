// Commands that may wait for a person or never end. They are reported so that the caller can prepare; they decide
// nothing.

import { programNameOf } from '../programs/wrappers.ts'
import type { SimpleCommand, Unclear } from '../words/types.ts'

interface Trap {
  readonly names: string
  readonly kind: Unclear['kind']
  readonly when?: (args: readonly string[], command: SimpleCommand) => boolean
  readonly message: string
}

const has = (args: readonly string[], pattern: RegExp): boolean => args.some((it) => pattern.test(it))
const operands = (args: readonly string[]): number => args.filter((it) => !it.startsWith('-')).length

const TRAPS: readonly Trap[] = [
  {
    names: 'vi vim nvim nano emacs pico micro helix hx ed ex joe',
    kind: 'interactive',
    message: 'An editor waits for keys.',
  },
  {
    names: 'less more most man info',
    kind: 'interactive',
    message: 'A pager waits for keys; use cat, or set PAGER=cat.',
  },
  {
    names: 'top htop btop watch glances',
    kind: 'endless',
    when: (args) => !has(args, /^-[bH]*[nl]\d*$/),
    message: 'It runs until it is stopped.',
  },
  {
    names: 'ssh scp sftp rsync',
    kind: 'interactive',
    message: 'It may ask for a password or for the key of a host; use -o BatchMode=yes.',
  },
  {
    names: 'sudo su doas pkexec passwd login',
    kind: 'interactive',
    when: (args) => !has(args, /^(-n|--non-interactive)$/),
    message: 'It may ask for a password on the terminal.',
  },
  { names: 'ssh-keygen gpg openssl', kind: 'interactive', message: 'It may ask for a passphrase.' },
  {
    names:
      'python python3 node irb php lua ghci iex julia R bash sh zsh sqlite3 psql mysql mongosh redis-cli bc ftp telnet',
    kind: 'interactive',
    when: (args) => args.length === 0,
    message: 'Without arguments it reads commands from the terminal.',
  },
  {
    names: 'cat grep rg sort wc head tail sed awk jq tee',
    kind: 'interactive',
    when: (args, { piped, via, redirections }) =>
      operands(args) === 0 && !piped && via.length === 0 && redirections.length === 0,
    message: 'Without a file it reads its standard input; it waits if that is a terminal.',
  },
  {
    names: 'tail journalctl',
    kind: 'endless',
    when: (args) => has(args, /^(-[a-zA-Z]*[fF][a-zA-Z]*\d*|--follow.*)$/),
    message: 'It follows the file until it is stopped.',
  },
  {
    names: 'ping',
    kind: 'endless',
    when: (args) => !has(args, /^-c/),
    message: 'It runs until it is stopped; use -c.',
  },
  { names: 'yes', kind: 'endless', message: 'It writes without an end.' },
  {
    names: 'sleep',
    kind: 'endless',
    when: (args) => has(args, /^(inf|\d{3,}|\d+[mhd])/),
    message: 'It waits for a long time.',
  },
  {
    names: 'read select',
    kind: 'interactive',
    when: (_, { piped, via }) => !piped && via.length === 0,
    message: 'It waits for a line; from a terminal that is a person.',
  },
  {
    names: 'docker podman kubectl',
    kind: 'interactive',
    when: (args) => has(args, /^(-[a-z]*t[a-z]*|--tty|--interactive)$/) && has(args, /^(run|exec|attach)$/),
    message: 'It asks for a terminal.',
  },
  {
    names: 'npm pnpm yarn bun',
    kind: 'interactive',
    when: (args) => has(args, /^(init|create|login|adduser|publish)$/) && !has(args, /^(-y|--yes)$/),
    message: 'It may ask questions.',
  },
  {
    names: 'npm pnpm yarn bun',
    kind: 'endless',
    when: (args) => has(args, /^(dev|start|serve|watch|preview)(:|$)/),
    message: 'A development server runs until it is stopped.',
  },
  {
    names: 'npx',
    kind: 'interactive',
    when: (args) => !has(args, /^(-y|--yes|--no-install|--no)$/),
    message: 'It may ask before it installs.',
  },
  {
    names: 'apt apt-get dnf yum pacman brew',
    kind: 'interactive',
    when: (args) =>
      has(args, /^(install|remove|upgrade|purge|-S\w*|dist-upgrade)$/) &&
      !has(args, /^(-y|--yes|--assume-yes|--noconfirm)$/),
    message: 'It may ask before it changes packages.',
  },
  {
    names: 'gh glab aws gcloud az heroku',
    kind: 'interactive',
    when: (args) => has(args, /^(login|auth|configure|init)$/),
    message: 'It may ask for a login.',
  },
  {
    names: 'crontab visudo',
    kind: 'interactive',
    when: (args) => has(args, /^-e$/) || args.length === 0,
    message: 'It opens an editor.',
  },
]

const GIT: readonly { readonly when: (args: readonly string[], text: string) => boolean; readonly message: string }[] =
  [
    {
      when: (_, text) => /GIT_SEQUENCE_EDITOR=['"]?(true|:)/.test(text),
      message: 'GIT_SEQUENCE_EDITOR=true runs the rebase unchanged; false makes it fail.',
    },
    {
      when: (args) => args.includes('rebase') && has(args, /^(-[a-z]*i[a-z]*|--interactive|--edit-todo)$/),
      message: 'An interactive rebase opens an editor; set GIT_SEQUENCE_EDITOR=false to make it fail.',
    },
    {
      when: (args) =>
        args.includes('commit') &&
        !has(args, /^(-[a-z]*[mFC][a-zA-Z]*|--message.*|--file.*|--no-edit|--fixup.*|--reuse-message.*)$/),
      message: 'Without a message it opens an editor.',
    },
    {
      when: (args) =>
        has(args, /^(merge|revert|cherry-pick|pull|tag|rebase)$/) &&
        has(args, /^(--continue|-e|--edit|-a|--annotate)$/) &&
        !has(args, /^(-m.*|--message.*|--no-edit)$/),
      message: 'It may open an editor.',
    },
    {
      when: (args) =>
        has(args, /^(add|reset|checkout|restore|stash|clean)$/) && has(args, /^(-p|-i|--patch|--interactive)$/),
      message: 'It asks about each change.',
    },
    {
      when: (args) => has(args, /^(clone|fetch|pull|push|ls-remote|submodule)$/),
      message: 'It may ask for a name and a password; set GIT_TERMINAL_PROMPT=0.',
    },
    {
      when: (args) => has(args, /^(mergetool|difftool|gui|citool|send-email|credential)$/),
      message: 'It starts another program that waits.',
    },
  ]

const trapsOf = new Map<string, readonly Trap[]>()
for (const trap of TRAPS)
  for (const name of trap.names.split(' ')) trapsOf.set(name, [...(trapsOf.get(name) ?? []), trap])

export function notesOf(commands: readonly SimpleCommand[]): readonly Unclear[] {
  return commands.flatMap((command): Unclear[] => {
    const name = programNameOf(command.words)
    const args = command.words.slice(1).map((it) => it.value ?? it.prefix)
    const { text } = command
    if (name === 'git') {
      const found = GIT.find((it) => it.when(args, text))
      return found === undefined ? [] : [{ kind: 'interactive', text, message: found.message }]
    }
    return (trapsOf.get(name ?? '') ?? [])
      .filter((it) => it.when?.(args, command) ?? true)
      .map(({ kind, message }) => ({ kind, text, message }))
  })
}
