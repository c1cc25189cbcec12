// What starts a turn: the input, and how this turn differs from the agent's defaults.

import { type JsonSchema, type Schema, toJsonSchema } from '../checks/json-schema.ts'
import { OxbowError } from '../errors.ts'
import type { Failure, InputBlock, Principal, TurnOptions } from '../events/types.ts'
import { parseRule } from '../permissions/rules.ts'
import type { Mode } from '../tools/mode.ts'

/** Text, or text with images and files. */
export type Input = string | readonly InputBlock[]

export interface RunOptions {
  /** Makes a retry safe: the same id is the same turn, whatever has become of it. Default: a new one. */
  readonly turnId?: string
  /**
   * When a turn is open already: run after it (default), join it at its next step (a turn of somebody else is not joined, but
   * followed), or refuse with `session_busy`. What joins or follows a turn that waits for an approval or a result waits until
   * that has come; `refuse` says what for.
   */
  readonly whenBusy?: 'queue' | 'steer' | 'refuse'
  /** Who asks. Default: the session's user, without roles. */
  readonly principal?: Principal
  /** Where it came in, for the record. Default `library`. */
  readonly surface?: string
  /** The answer must be JSON of this schema. */
  readonly output?: Schema
  readonly maxSteps?: number
  readonly totalTimeoutMs?: number
  readonly idleTimeoutMs?: number
  /** Another mode than the agent's, for this turn. */
  readonly mode?: Mode
  /** Further deny rules for this turn. @throws OxbowError `rule_invalid` for one that could match nothing */
  readonly deny?: readonly string[]
  /** For tools and middleware, as `attributes`; they never enter the prompt. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** The input is kept, and the turn fails at once: for a surface that has to accept what nobody can work on. */
  readonly failure?: Failure
  /** Aborting it interrupts the turn. */
  readonly signal?: AbortSignal
}

export function toInput(input: Input): InputBlock[] {
  const blocks: readonly InputBlock[] = typeof input === 'string' ? [{ type: 'text', text: input }] : input
  if (blocks.some((it) => it.type === 'data' || it.text.trim() !== '')) return [...blocks]
  throw new OxbowError('empty_input', 'The input is empty: give some text or a file.')
}

export function toTurnOptions(options: RunOptions): TurnOptions {
  const { output, maxSteps, totalTimeoutMs, idleTimeoutMs, mode, deny, attributes } = options
  return {
    ...(output !== undefined && {
      output: { name: 'output', schema: toJsonSchema(output, 'output') as JsonSchema & Record<string, unknown> },
    }),
    ...(maxSteps !== undefined && { maxSteps }),
    ...(totalTimeoutMs !== undefined && { totalTimeoutMs }),
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
    ...(mode !== undefined && { mode }),
    ...(deny !== undefined && { deny: deny.map((it) => parseRule(it).text) }),
    ...(attributes !== undefined && { attributes: { ...attributes } }),
  }
}
