// The start of a turn: the input, and the options in which this turn differs from the agent's defaults.
import { defined } from '../checks/defined.ts'
import { isObject } from '../checks/fields.ts'
import { type JsonSchema, type Schema, toJsonSchema } from '../checks/json-schema.ts'
import { OxbowError } from '../errors.ts'
import { isInputBlock } from '../events/blocks.ts'
import type { Failure, InputBlock, Principal, TurnOptions } from '../events/types.ts'
import { parseRule } from '../permissions/rules.ts'
import type { Mode } from '../tools/mode.ts'
import { jsonCopy } from '../tools/result-blocks.ts'

/** Text, or text with images and files. */
export type Input = string | readonly InputBlock[]

export interface RunOptions {
  /** Idempotency key: the same id is the same turn, whatever its state. Default: a new one. */
  readonly turnId?: string
  /**
   * When a turn is open already: run after it (default), join it at its next step (a turn of somebody else is not
   * joined, but followed), or refuse with `session_busy`. What joins or follows a turn that waits for an approval or a
   * result waits until that has arrived; the error of `refuse` names what it waits for.
   */
  readonly whenBusy?: 'queue' | 'steer' | 'refuse'
  /** The caller. Default: the session's user, without roles. */
  readonly principal?: Principal
  /** Where it came in, for the record. Default `library`. */
  readonly surface?: string
  /** The answer must be JSON of this schema. */
  readonly output?: Schema
  /** The id of one of the agent's `models`, for this turn. @throws OxbowError `unknown_model` */
  readonly model?: string
  /** Whether the first model call of the turn may (`auto`), must or must not call a tool, or which one it must call. */
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string }
  /** Never more than the agent's. */
  readonly maxSteps?: number
  readonly totalTimeoutMs?: number
  readonly idleTimeoutMs?: number
  /** Another mode than the agent's, for this turn. */
  readonly mode?: Mode
  /** Further deny rules for this turn. @throws OxbowError `rule_invalid` for one that could match nothing */
  readonly deny?: readonly string[]
  /** For tools and middleware, as `attributes`; they never enter the prompt. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** Stores the input and fails the turn at once: for a surface that must accept tasks it cannot run. */
  readonly failure?: Failure
  /** Aborting it interrupts the turn. */
  readonly signal?: AbortSignal
}

/**
 * A user's input as blocks.
 *
 * @throws OxbowError `invalid_option` for what is neither text nor blocks, `empty_input` for nothing but white space
 */
export function toInput(input: Input): InputBlock[] {
  const blocks = inputBlocks(input)
  if (blocks.some((it) => it.type === 'data' || it.text.trim() !== '')) return blocks
  throw new OxbowError('empty_input', 'The input is empty. Pass text or a file.')
}

/**
 * The result of an external call, as blocks. It may be empty: a tool that has nothing to say has still run.
 *
 * @throws OxbowError `invalid_option` for what is neither text nor blocks
 */
export function inputBlocks(input: Input): InputBlock[] {
  const blocks: readonly InputBlock[] = typeof input === 'string' ? [{ type: 'text', text: input }] : input
  if (!Array.isArray(blocks))
    throw new OxbowError(
      'invalid_option',
      `The input must be a text or a list of blocks: got ${input === null ? 'null' : typeof input}. ` +
        'The session keeps the conversation and the agent its instructions: pass only the new text.',
    )
  for (const [index, block] of blocks.entries())
    if (!isInputBlock(block)) throw new OxbowError('invalid_option', `input[${index}]: ${whyNoBlock(block)}`)
  return [...blocks]
}

function whyNoBlock(block: unknown): string {
  if (isObject(block) && 'role' in block)
    return 'a message with a role is not accepted: the session keeps the conversation. Pass only the new text.'
  if (isObject(block) && block.type === 'data')
    return 'a data block needs a mediaType such as image/png, and either data in Base64 or a url. See fileBlock().'
  return 'must be { type: "text", text } or { type: "data", mediaType, data }. fileBlock(path) makes one of a file.'
}

/** They are stored: what a restart would lose is refused. */
function jsonAttributes(attributes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  try {
    return jsonCopy(attributes, 'attributes') as Record<string, unknown>
  } catch (error) {
    throw new OxbowError('invalid_option', `${(error as Error).message}. Attributes must be JSON.`, { cause: error })
  }
}

export function toTurnOptions(options: RunOptions): TurnOptions {
  const { output, model, toolChoice, maxSteps, totalTimeoutMs, idleTimeoutMs, mode, deny, attributes } = options
  return {
    ...(output !== undefined && {
      output: { name: 'output', schema: toJsonSchema(output, 'output') as JsonSchema & Record<string, unknown> },
    }),
    ...defined({ model, toolChoice, maxSteps, totalTimeoutMs, idleTimeoutMs, mode }),
    ...(deny !== undefined && { deny: deny.map((it) => parseRule(it).text) }),
    ...(attributes !== undefined && { attributes: jsonAttributes(attributes) }),
  }
}
