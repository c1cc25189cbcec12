// Commands that run further commands which are not among their words, as far as the words show it.
import { checkAwk } from '../programs/awk.ts'
import { checkSed } from '../programs/sed.ts'
import { isShell, isWrapper, OPAQUE, programNameOf } from '../programs/wrappers.ts'
import type { SimpleCommand } from '../words/types.ts'

/** Arguments that hold code, or commands, in the program's own language. */
const CODE: readonly (readonly [program: RegExp, argument: RegExp])[] = [
  [/^(python[\d.]*|pypy\d?)$/, /^-[A-Za-z]*c/],
  [/^(node|nodejs|deno|bun)$/, /^(-[A-Za-z]*[ep]|--(eval|print)|eval$)/],
  [/^(perl[\d.]*|ruby[\d.]*|lua[\d.]*|osascript|R|Rscript)$/, /^-[A-Za-z0-9]*[eE]/],
  [/^php[\d.]*$/, /^-[A-Za-z]*[rBRE]/],
  [/^(vim?|nvim|view|ex|emacs|nano|ed)$/, /^[-+]/],
  [/^git$/, /^(-c|--config-env|--exec-path|--upload-pack|--receive-pack|--exec|-x$)/],
  [/^g?tar$/, /^(-[A-Za-z]*[IF]|--(to-command|checkpoint|use-compress|info-script|new-volume|rsh))/],
  [/^(rsync|scp|sftp)$/, /^(-[A-Za-z]*[eoS]|--rsh)/],
]

/** Programs that run what they read when they are given nothing to run. */
const READERS = /^(python[\d.]*|pypy\d?|node|nodejs|deno|bun|perl[\d.]*|ruby[\d.]*|lua[\d.]*|php[\d.]*|osascript|R)$/

/**
 * Whether the command runs a text that the analysis has not read: a script on the standard input of a shell, code in an
 * argument, the words that a wrapper builds. The actions of a program, and the files that it reads, are out of scope.
 */
export function runsUnfollowed({ words, script }: SimpleCommand): boolean {
  const name = programNameOf(words)
  // Only assignments, or a name that only the shell will know; the latter may be anything in any case.
  if (name === undefined) return false
  if (Object.hasOwn(OPAQUE, name) || name === 'alias') return true
  const args = words.slice(1)
  if (isWrapper(name)) return args.length > 0
  const [first] = args
  const file = first?.value !== undefined && !/^([-+]|\/(dev|proc)\/)/.test(first.value)
  if (isShell(name) || name === 'source' || name === '.') return script === undefined && !file
  if (name === 'eval' || name === 'trap') return script === undefined && args.length > 0
  if (/^[gmn]?awk$/.test(name)) return typeof checkAwk(args) === 'string'
  if (/^g?sed$/.test(name)) return typeof checkSed(args) === 'string'
  if (READERS.test(name) && (first === undefined || first.value === '-' || first.value?.startsWith('/dev/')))
    return true
  return CODE.some(
    ([program, argument]) => program.test(name) && args.some((it) => argument.test(it.value ?? it.prefix)),
  )
}
