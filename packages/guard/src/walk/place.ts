// The state of the walk through a script, and its interface for words.
import type { ParsedScript } from 'unbash'
import type { Construct, Shell, SimpleCommand } from '../words/types.ts'
import type { Scope, WordContext } from '../words/units.ts'
import type { WalkOutcome } from './scope.ts'

export interface Walk {
  readonly home: string
  readonly interactive: boolean
  readonly mayRead: (folder: string) => boolean
  readonly simple: SimpleCommand[]
  readonly unknown: Construct[]
  /** Patterns that were expanded against the names in folders, as they are written. */
  readonly patterns: string[]
  /** Words that belong to no simple command: the lists of loops, what `case` compares. */
  readonly between: string[]
  /** Walks a script that was parsed with the text around it, and one that has still to be parsed. */
  readonly enter: (place: WorkingPlace, tree: ParsedScript, scope: Scope) => WalkOutcome
  readonly parseAndEnter: (place: WorkingPlace, source: string, scope: Scope) => WalkOutcome
}

export interface WorkingPlace {
  readonly walk: Walk
  readonly source: string
  readonly via: readonly string[]
  readonly shell: Shell
  readonly piped: boolean
}

export function onlyInBash({ walk, shell }: WorkingPlace, text: string): void {
  if (shell === 'sh')
    walk.unknown.push({
      kind: 'bash',
      text,
      why: 'Only bash reads this as bash does; another shell may run something else.',
    })
}

export function contextOf(place: WorkingPlace, scope: Scope): WordContext {
  const { walk } = place
  return {
    scope,
    home: walk.home,
    interactive: walk.interactive,
    mayRead: walk.mayRead,
    pattern: (text) => walk.patterns.push(text),
    unknown: (it) => walk.unknown.push(it),
    bashOnly: (text) => onlyInBash(place, text),
    script: (tree, label, text) => {
      if (tree === undefined)
        walk.unknown.push({ kind: 'substitution', text, why: 'The command in it was not understood.' })
      else walk.enter({ ...place, via: [...place.via, label] }, tree, scope)
    },
  }
}
