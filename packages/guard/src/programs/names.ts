// Which names of variables mean nothing to anybody but the script.

/** Lower-case names that zsh, csh and some builtins treat as their own. */
const SHELL_NAMES = new Set(
  'aliases argv auto_resume cdpath commands dirstack fignore fpath functions histchars history mailpath manpath module_path modules options path pipestatus prompt psvar signals status watch'.split(
    ' ',
  ),
)

/** A variable that no program and no shell gives a meaning. */
export const isPlainName = (name: string): boolean =>
  /^[a-z][a-z0-9_]*$/.test(name) && !/(_proxy|_config_.*)$/.test(name) && !SHELL_NAMES.has(name)

/** Whether a variable of the environment may hold a key or a password, by its name. */
export const mayBeSecret = (name: string): boolean =>
  /key|token|secret|passw|passphrase|credential|private|cookie|bearer|jwt|oauth|webhook|connection_?string/i.test(
    name,
  ) ||
  /_(?:auth|pass|pat|pwd|pw|dsn)$|(?:database|db|redis|mongo\w*|postgres\w*|mysql|amqp|rabbit\w*|broker|cache)_ur[il]$/i.test(
    name,
  )

/**
 * A variable of the environment in a command that may hold a secret. Names in lower case are those of scripts.
 *
 * @example secretIn('echo "$API_TOKEN"') // 'API_TOKEN'
 */
export const secretIn = (text: string): string | undefined =>
  [...text.matchAll(/\$\{?[#!]?([A-Z_][A-Z0-9_]*|npm_config_\w+)\b/g)].map(([, name]) => name!).find(mayBeSecret)

export const shows = (variable: string): string => `It may show what the variable ${variable} holds.`
