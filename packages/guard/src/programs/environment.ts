// Variables: which may be set without a question, and to what; which may hold a secret.

import type { Assigned } from '../words/types.ts'

const WORD = /^[\w.@:+-]*$/
const SWITCH = /^(0|1|true|false|yes|no|on|off|never|always|auto)?$/i

/** In front of a command, where the program and all of its children see them. */
const SAFE: Readonly<Record<string, RegExp>> = {
  LANG: WORD,
  LANGUAGE: WORD,
  LC_ALL: WORD,
  LC_COLLATE: WORD,
  LC_CTYPE: WORD,
  LC_MESSAGES: WORD,
  LC_NUMERIC: WORD,
  LC_TIME: WORD,
  TZ: /^[A-Za-z][\w+/-]*$/,
  NO_COLOR: SWITCH,
  FORCE_COLOR: /^[0-3]?$|^(true|false)$/,
  CLICOLOR: SWITCH,
  CLICOLOR_FORCE: SWITCH,
  COLUMNS: /^\d+$/,
  LINES: /^\d+$/,
  TERM: /^(dumb|xterm|xterm-256color)$/,
  CI: SWITCH,
  NODE_ENV: /^(test|development|production)$/,
  RUST_BACKTRACE: /^(0|1|full)$/,
  PYTHONUNBUFFERED: SWITCH,
  PYTHONDONTWRITEBYTECODE: SWITCH,
  PAGER: /^(cat)?$/,
  GIT_PAGER: /^(cat)?$/,
  MANPAGER: /^(cat)?$/,
  GIT_TERMINAL_PROMPT: /^0$/,
  GIT_OPTIONAL_LOCKS: /^0$/,
  GIT_EDITOR: /^(false|true|:)$/,
  GIT_SEQUENCE_EDITOR: /^false$/,
  DEBIAN_FRONTEND: /^noninteractive$/,
  LESS: /^-?[FRXSMin]*$/,
}

/** Upper-case names that scripts use for their own values. */
const OWN_NAMES = new Set(
  'A B C D F I J K N X Y BASE BRANCH COMMIT COUNT CURRENT DATE DEST DIR DIRS END EXT FILE FILENAME FILES FIRST FOUND HASH IDX INDEX ITEM ITEMS LAST LEN LIMIT LINE LIST MATCH MAX MESSAGE MIN MSG NAME NUM OLD NEW OUT OUTPUT PATTERN PKG PORT RESULT ROOT SHA SIZE SRC START STATUS STR TAG TARGET TEXT TOTAL URL VALUE VERSION'.split(
    ' ',
  ),
)

/** Whether an assignment in front of a command, or alone on its line, changes nothing that others look at. */
export function isSafeAssignment({ name, value }: Assigned, alone: boolean): boolean {
  if (alone && (isPlainName(name) || OWN_NAMES.has(name))) return true
  const allowed = Object.hasOwn(SAFE, name) ? SAFE[name] : undefined
  return allowed !== undefined && value?.value !== undefined && allowed.test(value.value)
}

/** Lower-case names that zsh, csh and some builtins treat as their own. */
const SHELL_NAMES = new Set(
  'aliases argv auto_resume cdpath commands dirstack fignore fpath functions histchars history mailpath manpath module_path modules options path pipestatus prompt psvar signals status watch'.split(
    ' ',
  ),
)

/** A variable without a meaning for any program or shell. */
export const isPlainName = (name: string): boolean =>
  /^[a-z][a-z0-9_]*$/.test(name) && !/(_proxy|_config_.*)$/.test(name) && !SHELL_NAMES.has(name)

/** Whether a variable of the environment may hold a key or a password, by its name. */
export const mayBeSecret = (name: string): boolean =>
  /key|token|secret|passw|passphrase|credential|private|cookie|bearer|jwt|oauth|webhook|connection_?string/i.test(
    name,
  ) ||
  /_(?:auth|pass|pat|pwd|pw|dsn)$|(?<!^no)[._]proxy$|(?:database|db|redis|mongo\w*|postgres\w*|mysql|amqp|rabbit\w*|broker|cache)_ur[il]$/i.test(
    name,
  )

/**
 * A variable of the environment in a command that may hold a secret. Names in lower case are those of scripts.
 *
 * @example secretIn('echo "$API_TOKEN"') // 'API_TOKEN'
 */
export const secretIn = (text: string): string | undefined =>
  [...text.matchAll(/\$\{?[#!]?([A-Z_][A-Z0-9_]*|npm_config_\w+|[a-z]+_proxy)\b/g)]
    .map(([, name]) => name!)
    .find(mayBeSecret)

export const shows = (variable: string): string => `It may show what the variable ${variable} holds.`
