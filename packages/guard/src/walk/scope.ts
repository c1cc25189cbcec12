// Where a command runs and which variables are known there, followed through the control flow of a script.
import { posix, win32 } from 'node:path'
import type { Argument } from '../words/types.ts'
import type { Scope } from '../words/units.ts'

/** The state after a command: when it has succeeded, and when it has failed. `undefined` if that never comes. */
export interface WalkOutcome {
  readonly success: Scope | undefined
  readonly failure: Scope | undefined
}

export const both = (scope: Scope): WalkOutcome => ({ success: scope, failure: scope })

export const after = ({ success, failure }: WalkOutcome, otherwise: Scope): Scope =>
  merge(success, failure) ?? otherwise

/** The state after one or the other. */
export function merge(one: Scope | undefined, other: Scope | undefined): Scope | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other
  const { budget } = one
  budget.spend('steps', one.variables.size + other.variables.size)
  const variables = new Map<string, Argument | null>()
  for (const name of [...one.variables.keys(), ...other.variables.keys()]) {
    const first = one.variables.get(name)
    const second = other.variables.get(name)
    variables.set(name, first && second && first.value !== undefined && first.value === second.value ? first : null)
  }
  // An unknown folder makes the whole unknown.
  const known = one.directories.length > 0 && other.directories.length > 0
  return { variables, directories: known ? few([...one.directories, ...other.directories]) : [], budget }
}

/** A command that may run in more folders than this runs in an unknown one. */
const MOST_DIRECTORIES = 16

function few(directories: readonly string[]): readonly string[] {
  const distinct = [...new Set(directories)]
  return distinct.length > MOST_DIRECTORIES ? [] : distinct
}

/** The state after an assignment; `null` for a value that is not known. */
export function bind(scope: Scope, name: string, value: Argument | null): Scope {
  scope.budget.spend('steps', scope.variables.size)
  return { ...scope, variables: new Map(scope.variables).set(name, value?.value === undefined ? null : value) }
}

/** After something that may have changed any variable: none is known, neither `HOME` nor `PWD`. */
export const forgetAll = (scope: Scope): Scope => ({
  ...scope,
  variables: new Map([...scope.variables.keys(), 'HOME', 'PWD'].map((name) => [name, null])),
})

/**
 * The folders after `cd`. Shells take `..` away from the text first and fall back to the real parent; both are kept.
 */
export function changeDirectory(scope: Scope, words: readonly Argument[]): WalkOutcome {
  const args = words.slice(1).filter((it) => it.value !== '-P' && it.value !== '-L' && it.value !== '--')
  const target = args[0]?.value
  const unknown = { ...scope, directories: [] }
  if (args.length !== 1 || target === undefined || target === '' || target.startsWith('-'))
    return { success: unknown, failure: scope }
  const flavour = process.platform === 'win32' ? win32 : posix
  const directories = scope.directories.flatMap((it) => {
    const logical = flavour.resolve(it, target)
    const physical = flavour.isAbsolute(target) ? target : `${it}${flavour.sep}${target}`
    return target.includes('..') ? [logical, physical] : [logical]
  })
  return { success: { ...scope, directories: few(directories) }, failure: scope }
}
