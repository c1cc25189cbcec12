// The parts of a word, and its known context.
import type { ParsedScript } from 'unbash'
import type { WorkBudget } from '../budget.ts'
import type { Argument, Construct } from './types.ts'

/** A character of a word, or a hole that only the shell can fill. */
export type Unit =
  | { readonly type: 'char'; readonly char: string; readonly quoted: boolean }
  | {
      readonly type: 'hole'
      /** May become several words, or none. */
      readonly splits: boolean
      /** Begins with a digit. */
      readonly numeric?: boolean
      /** The name of a pipe from another command. */
      readonly pipe?: boolean
    }

/** The known context of a word. */
export interface Scope {
  /** Variables with a known value; `null` marks one that was changed in a way that is not known. */
  readonly variables: ReadonlyMap<string, Argument | null>
  /** The folders in which the command may run; empty if that is not known. */
  readonly directories: readonly string[]
  readonly budget: WorkBudget
}

export interface WordContext {
  readonly scope: Scope
  readonly home: string
  readonly interactive: boolean
  /** Takes note of a construct that only bash reads this way. */
  readonly bashOnly: (text: string) => void
  readonly unknown: (construct: Construct) => void
  /** Walks a script that runs inside the word. */
  readonly script: (script: ParsedScript | undefined, label: string, text: string) => void
  /** Whether names in the folder may be looked up. */
  readonly mayRead: (folder: string) => boolean
  /** Takes note of a pattern that was expanded against the names in a folder. */
  readonly pattern: (text: string) => void
}
