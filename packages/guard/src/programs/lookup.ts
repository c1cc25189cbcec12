// The row of a program in the table of those that only read, and whether a call stays within it.
import type { Argument } from '../words/types.ts'
import { readGit } from './git.ts'
import { type OptionList, optionList, readOptions } from './options.ts'
import { READ_ONLY, type ReadOnlyCommand } from './read-only.ts'

export interface Row extends ReadOnlyCommand {
  readonly list: OptionList
}

let table: ReadonlyMap<string, Row> | undefined

/** The row of a program; undefined for one that is not in the table. */
export function rowOf(name: string): Row | undefined {
  if (table === undefined) {
    const rows = new Map<string, Row>()
    for (const it of READ_ONLY) {
      const list = optionList(it.options ?? '')
      for (const each of it.names.split(' ')) rows.set(each, { ...it, list })
    }
    table = rows
  }
  return table.get(name)
}

/** Programs and builtins that do something to files or variables, and never run one of their words. */
const PLAIN = new Set(
  'chgrp chmod chown cp declare export kill ln local mkdir mv readonly rm rmdir shred tee touch truncate unlink'.split(
    ' ',
  ),
)

/** Whether a program runs none of its words, as far as its options are known. */
export function runsNoWord(name: string, args: readonly Argument[]): boolean {
  if (PLAIN.has(name)) return true
  const known = args.filter((it) => it.value !== undefined)
  if (name === 'git')
    return (
      !('problem' in readGit(known)) ||
      !args.some((it) => /^(-.*|bisect|submodule|rebase|filter-branch|difftool|mergetool|config)$/.test(it.prefix)) ||
      /^(add|commit|checkout|switch|push|pull|fetch|merge|tag|branch|stash|restore|reset)$/.test(args[0]?.value ?? '')
    )
  const row = rowOf(name)
  if (row === undefined) return false
  if (row.raw !== undefined) return typeof row.raw(args) !== 'string'
  if (row.operands === 'anything') return true
  const call = readOptions(known, row.list)
  return !('problem' in call) && typeof row.check?.(call) !== 'string'
}
