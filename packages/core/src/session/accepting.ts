// Why an input is not accepted.
import { isDeepStrictEqual } from 'node:util'
import type { Agent } from '../agents/agent-type.ts'
import { OxbowError } from '../errors.ts'
import type { InputBlock, TurnOptions } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { checkRule, namesTool, parseRule } from '../permissions/rules.ts'
import { openApprovals, type TurnState } from '../state/state.ts'

/** A different input under a used id must not get the answer to the earlier one. */
export async function checkSame(
  log: SessionLog,
  after: number,
  id: string,
  input: readonly InputBlock[],
): Promise<void> {
  for (let seq = after; seq < log.state.seq; ) {
    const page = await log.read(seq)
    const known = page.find(
      (it) => (it.type === 'turn.started' && it.turnId === id) || (it.type === 'turn.steered' && it.inputId === id),
    )
    if (known !== undefined && 'input' in known && !isDeepStrictEqual(known.input, input))
      throw new OxbowError(
        'turn_conflict',
        `The turn id ${id} was used for another input in this session. Say the same again to get its answer, or take a new id.`,
      )
    if (known !== undefined || page.length === 0) return
    seq = page.at(-1)!.seq
  }
}

/**
 * A denial that can match nothing denies nothing. What agents elsewhere have, to which it hands tasks, is not known
 * here.
 */
export function checkDenied(deny: readonly string[] = [], { tools }: Agent): void {
  const all = [...tools.values()]
  const handsOn = all.some((it) => it.effects.includes('delegate'))
  for (const rule of deny.map(parseRule))
    if (!handsOn || all.some((it) => namesTool(rule, 'deny', it))) checkRule(rule, 'deny', all)
}

/** @throws OxbowError `unknown_model`, or `unknown_tool` for a forced tool that the agent does not have */
export function checkChoices({ model, toolChoice }: TurnOptions, { name, models, tools }: Agent): void {
  if (model !== undefined && !models.has(model))
    throw new OxbowError(
      'unknown_model',
      `The agent ${name} has no model "${model}". Add it to the agent's models. Models: ${[...models.keys()].join(', ')}.`,
    )
  if (typeof toolChoice === 'object' && !tools.has(toolChoice.tool))
    throw new OxbowError(
      'unknown_tool',
      `toolChoice: the agent ${name} has no tool "${toolChoice.tool}". Tools: ${[...tools.keys()].join(', ')}.`,
    )
}

/** A refused caller must learn whether waiting helps, and for what. */
export function busyWith(turn: TurnState): OxbowError {
  const { turnId, paused, calls } = turn
  if (paused === undefined)
    return new OxbowError('session_busy', `Turn ${turnId} is running in this session.`, { retryable: true })
  const waits = calls.filter((it) => it.finished === undefined)
  const externals = waits.filter((it) => it.external === true && it.resolved === undefined)
  const what = [
    ...openApprovals(turn).map((it) => `the approval ${it.approvalId} of ${it.tool} (decide)`),
    ...externals.map((it) => `the result of the call ${it.callId} of ${it.tool} (resolve)`),
  ]
  const until = what.length > 0 ? what.join(' and ') : 'its release (release)'
  return new OxbowError(
    'session_busy',
    `Turn ${turnId} of this session waits for ${until}: queued turns wait behind it. Answer it, or interrupt it.`,
    { details: { turnId, waiting: paused.reason } },
  )
}
