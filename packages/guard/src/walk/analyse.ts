// From the text of a command line to the simple commands in it.
import { homedir } from 'node:os'
import { makeBudget, TooMuch, type WorkBudget } from '../budget.ts'
import { checkPathAgain, type PathCheck, type PathOptions } from '../paths/check-path.ts'
import type { SeenNames } from '../paths/real-path.ts'
import { deceptive, LONGEST } from '../words/parser.ts'
import type { AnalyseOptions, Construct, SimpleCommand } from '../words/types.ts'
import { walkScript } from './walk.ts'

/** File system lookups and remaining budget of one analysis; discarded with it. */
export interface Look {
  readonly budget: WorkBudget
  readonly seen: SeenNames
  /** Answers about paths, by access, folder and path. */
  readonly checked: Map<string, PathCheck>
}

export const makeLook = (): Look => ({ budget: makeBudget(), seen: new Map(), checked: new Map() })

export interface Walked {
  readonly simple: readonly SimpleCommand[]
  readonly unknown: readonly Construct[]
  /** Folders outside the roots whose names a pattern would list. */
  readonly outside: readonly string[]
  /** Patterns that were expanded against the names in folders. */
  readonly patterns: readonly string[]
  /** Words that belong to no simple command: the lists of loops, what `case` compares. */
  readonly between: readonly string[]
}

export const pathOptions = (cwd: string, access: 'read' | 'write', options: AnalyseOptions): PathOptions => ({
  cwd,
  roots: options.roots,
  access,
  ...(options.readOnlyRoots === undefined ? {} : { readOnlyRoots: options.readOnlyRoots }),
  ...(options.home === undefined ? {} : { home: options.home }),
  ...(options.caseInsensitive === undefined ? {} : { caseInsensitive: options.caseInsensitive }),
})

/** Lists the simple commands of a text. What is too long, too costly or not understood is listed in `unknown`. */
export function analyse(text: string, options: AnalyseOptions, { budget, seen }: Look): Walked {
  const simple: SimpleCommand[] = []
  const unknown: Construct[] = []
  const outside: string[] = []
  const patterns: string[] = []
  const between: string[] = []
  const strange = deceptive(text)
  if (strange !== undefined) unknown.push(strange)
  if (text.length > LONGEST) return { simple, unknown, outside, patterns, between }
  const mayRead = (folder: string): boolean => {
    budget.spend('paths')
    const { inside } = checkPathAgain(folder, pathOptions(options.cwd, 'read', options), seen)
    if (!inside) outside.push(folder)
    return inside
  }
  const home = options.home ?? homedir()
  try {
    const walk = { home, interactive: options.interactive ?? false, mayRead, simple, unknown, patterns, between }
    walkScript(walk, text, { variables: new Map(), directories: [options.cwd], budget }, options.shell ?? 'sh')
  } catch (error) {
    unknown.push(notUnderstood(text, error as Error))
  }
  return { simple, unknown, outside, patterns, between }
}

/** Hostile nesting can exhaust the stack; then, and when the budget is spent, the text has not been understood. */
export const notUnderstood = (text: string, error: Error): Construct => ({
  kind: error instanceof TooMuch ? 'budget' : 'syntax',
  text: text.slice(0, 80),
  why: error instanceof TooMuch ? error.message : `The command was not understood: ${error.message}`,
})
