// When a turn ends early: the agent's own condition, asked after each step with tool calls.
import { OxbowError } from '../errors.ts'
import type { CallStatus, Usage } from '../events/types.ts'
import type { TurnState } from '../state/state.ts'

/** A step whose calls have all ended. */
export interface FinishedStep {
  /** 1 for the first model call of the turn. */
  readonly step: number
  readonly text: string
  /**
   * The calls of this step, in the order in which the model asked for them. `arguments` are absent if no call was made.
   */
  readonly calls: readonly {
    readonly tool: string
    readonly arguments: Readonly<Record<string, unknown>> | undefined
    readonly status: CallStatus
  }[]
  /** Of all model calls of the turn so far. */
  readonly usage: Usage
}

/** Whether the turn ends here. Must be pure: it runs again when a turn is recovered. */
export type StopWhen = (step: FinishedStep) => boolean

/** @throws OxbowError `agent_invalid` when the answer is neither true nor false, for example a promise */
export function stopsAfter(stopWhen: StopWhen, turn: TurnState): boolean {
  const answer: unknown = stopWhen(finishedStep(turn))
  if (typeof answer === 'boolean') return answer
  const what = answer instanceof Promise ? 'a promise' : String(answer)
  throw new OxbowError('agent_invalid', `stopWhen must answer true or false at once; got ${what}.`)
}

const finishedStep = ({ step, reply, calls, usage }: TurnState): FinishedStep => ({
  step,
  text: reply?.text ?? '',
  calls: calls.map(({ tool, decided, finished }) => ({
    tool,
    arguments: decided?.arguments,
    status: finished ?? 'unknown',
  })),
  usage,
})
