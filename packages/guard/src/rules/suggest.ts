// Which rules to offer with a question about a command.
import { OPAQUE, programNameOf } from '../programs/wrappers.ts'
import type { Analysis, Argument } from '../words/types.ts'
import { harmlessSurroundings } from './surroundings.ts'

/**
 * The rule that would allow the command the next time: its exact words. No wildcard is offered, because nearly every
 * program has an option that runs another one or reads any file: `go test -exec`, `npm run --script-shell`, `git commit
 * -F`. None for more than one command, a wrapper, an interpreter, or words that are not written out.
 */
export function suggestFrom({ simple, unknown, compound }: Analysis): readonly string[] {
  const [command] = simple
  if (command === undefined || compound || unknown.length > 0 || simple.length > 1) return []
  const { words, start, via, script } = command
  const name = programNameOf(words)
  if (name === undefined || start > 0 || via.length > 0 || script !== undefined || !harmlessSurroundings(command))
    return []
  if (Object.hasOwn(OPAQUE, name) || INTERPRETERS.test(name) || words[0]!.value !== name || !/^[\w.+-]+$/.test(name))
    return []
  if (!words.every(isWrittenOut)) return []
  return [words.map((it) => quote(it.value!)).join(' ')]
}

/** Whether the text contains the word literally, apart from quotes. */
const isWrittenOut = ({ text, value }: Argument): boolean =>
  value !== undefined && !/[\n\0]/.test(value) && value.replace(/['"\\]/g, '') === text.replace(/['"\\]/g, '')

const INTERPRETERS =
  /^(ba|da|z|k|c|tc|fi)?sh$|^(eval|source|\.|exec|trap|alias|export|python[\d.]*|node|deno|bun|perl|ruby|php|lua|osascript|awk|gawk|mawk|sed|find|tar|ssh|curl|wget|rm|dd|kill|ed|vim?|nvim|emacs|less|man)$/

const quote = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
