// A line that writes files can outrun its own check, which looks at the files before the line has written them.
import { rowOf } from '../programs/lookup.ts'
import { programNameOf } from '../programs/wrappers.ts'
import type { Walked } from '../walk/analyse.ts'
import type { Reason, SimpleCommand } from '../words/types.ts'

/** Programs that put links, or files from elsewhere, where the check has seen none. */
const MOVERS = /^(7z|ar|bsdtar|cp|cpio|install|ln|mv|patch|rsync|scp|tar|unlink|unzip|wget|curl)$/
const GIT_MOVERS =
  /^(am|apply|checkout|cherry-pick|clone|fetch|merge|pull|rebase|reset|restore|revert|stash|submodule|switch|worktree)$/

const moves = ({ words }: SimpleCommand): boolean => {
  const name = programNameOf(words) ?? ''
  return MOVERS.test(name) || (name === 'git' && words.slice(1).some((it) => GIT_MOVERS.test(it.value ?? '')))
}

/** Whether it was checked by looking at files that it names. */
const looksAtFiles = ({ words }: SimpleCommand): boolean => {
  const operands = rowOf(programNameOf(words) ?? '')?.operands
  const byName = operands === 'files' || operands === 'names' || operands === 'pattern and files'
  return byName && words.slice(1).some((it) => !it.prefix.startsWith('-'))
}

/**
 * What the line may change before a command of it runs that was checked as the files are now.
 *
 * @param covered commands that only a rule allows
 * @param writes whether the output of some command goes to a file
 */
export function outrun(
  text: string,
  { simple, patterns }: Walked,
  covered: readonly SimpleCommand[],
  writes: boolean,
): readonly Reason[] {
  const alone = simple.length === 1 && simple[0]!.text === text.trim()
  const reasons: Reason[] = []
  const [pattern] = patterns
  // One command alone expands its patterns before it opens a file.
  if (pattern !== undefined && !alone && (writes || covered.length > 0))
    reasons.push({
      decision: 'ask',
      code: 'dynamic',
      message: `The pattern ${pattern} may match files that the line itself writes.`,
      text: pattern,
    })
  const mover = covered.find(moves)
  const reader = simple.find((it) => !covered.includes(it) && looksAtFiles(it))
  if (mover !== undefined && reader !== undefined)
    reasons.push({
      decision: 'ask',
      code: 'dynamic',
      message: `What ${reader.text} reads depends on what ${mover.text} puts there.`,
      text: reader.text,
    })
  return reasons
}
