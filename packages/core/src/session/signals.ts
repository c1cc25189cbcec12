// Signals for the open turn, which durable tools wait for.
import { mayActFor } from '../authority.ts'
import { text } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { Build } from '../journal/draft.ts'
import { assertId, newId } from '../journal/ids.ts'
import { jsonCopy } from '../tools/result-blocks.ts'
import { checkOption, SIGNAL } from './option-fields.ts'
import type { Submitted } from './turn-stream.ts'

/** Signals of one turn that no call has received yet. */
const MAX_SIGNALS = 100
const MAX_SIGNAL_LENGTH = 100_000

function signalBody(name: string, value: unknown): { name: string; value: unknown } {
  try {
    const copy = jsonCopy(value, 'value')
    if (JSON.stringify(copy).length <= MAX_SIGNAL_LENGTH && name.length <= 200) return { name, value: copy }
  } catch (error) {
    throw new OxbowError('invalid_option', `signal(): ${(error as Error).message}`, { cause: error })
  }
  throw new OxbowError(
    'invalid_option',
    `signal(): a name has at most 200 characters, a value ${MAX_SIGNAL_LENGTH} as JSON. Send a reference.`,
  )
}

/** @throws OxbowError `invalid_option`; the build throws `unknown_turn`, `signal_forbidden`, `signal_limit` */
export function signalFor(
  name: string,
  value: unknown,
  options: { readonly id?: string; readonly turnId?: string; readonly principal: Principal },
): Build<Submitted> {
  checkOption('signal()', options, SIGNAL)
  const problem = text(name, 'name')
  if (problem !== undefined) throw new OxbowError('invalid_option', `signal(): ${problem}`)
  const body = signalBody(name, value)
  const { principal } = options
  const signalId = options.id === undefined ? newId() : assertId(options.id, 'id')
  return (draft) => {
    const { turn, seq } = draft.state
    const wanted = options.turnId ?? turn?.turnId
    if (turn === undefined || turn.turnId !== wanted)
      throw new OxbowError(
        'unknown_turn',
        options.turnId === undefined
          ? 'No turn of this session is open, so nothing can receive the signal.'
          : `Turn ${JSON.stringify(options.turnId)} is not the open turn of this session.`,
      )
    const { turnId } = turn
    if (!mayActFor(principal, turn.principal))
      throw new OxbowError('signal_forbidden', `Only ${turn.principal.user}, for whom this turn runs, may signal it.`)
    if (turn.signalIds?.includes(signalId)) return { turnId, accepted: 'duplicate', after: seq }
    if ((turn.signals?.length ?? 0) >= MAX_SIGNALS || (turn.signalIds?.length ?? 0) >= MAX_SIGNALS * 10)
      throw new OxbowError('signal_limit', `${MAX_SIGNALS} signals wait to be received by turn ${turnId}.`)
    draft.add({ type: 'signal.received', turnId, signalId, ...body, principal })
    return { turnId, accepted: 'started', after: seq }
  }
}
