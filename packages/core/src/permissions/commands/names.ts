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
