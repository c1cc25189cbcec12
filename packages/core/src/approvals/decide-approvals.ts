// Decisions of people in one session: stored for the call that asked, or passed to the child on whose behalf it asked.
import { defined } from '../checks/defined.ts'
import { isObject } from '../checks/fields.ts'
import { type ApprovalAnswer, answerAbove, answerLate } from '../children/rise.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { OxbowError } from '../errors.ts'
import type { Event, Principal } from '../events/types.ts'
import type { Build } from '../journal/draft.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { storeRememberedRule } from '../permissions/remembered.ts'
import type { SessionKey } from '../ports.ts'
import { callOfApproval, type SessionState } from '../state/state.ts'
import {
  type ApprovalDecision,
  approvalExpired,
  checkDecision,
  type DecisionAttempt,
  type ReadDecision,
  readDecision,
  resolveApproval,
} from './decision.ts'

/** An approval and the decision on it. */
export interface NamedDecision {
  readonly approvalId: string
  readonly decision: ApprovalDecision
}

interface Read {
  readonly approvalId: string
  readonly decision: ReadDecision
}

interface SubmittedDecision {
  readonly turnId: string
  readonly accepted: 'started'
  readonly after: number
}

export interface ApprovalDecisions {
  /** @throws OxbowError as `Session.decideAll` */
  decide(all: readonly NamedDecision[], principal: Principal): Promise<SubmittedDecision>
  /** @throws OxbowError as `Session.decide` */
  check(one: NamedDecision, principal: Principal): Promise<void>
}

export function approvalDecisions(
  engine: EngineInternals,
  key: SessionKey,
  place: {
    withCurrentLog<T>(work: (log: SessionLog) => T | Promise<T>): Promise<T>
    appendAndWake<T>(build: Build<T>): Promise<T>
    /** The same of a session below this one. */
    child(session: string): {
      decide(all: readonly NamedDecision[], principal: Principal): Promise<unknown>
      check: ApprovalDecisions['check']
    }
  },
): ApprovalDecisions {
  const { withCurrentLog: current, appendAndWake: bring, child } = place

  const deciding = (
    { agent }: SessionState,
    { approvalId, decision }: Read,
    principal: Principal,
  ): DecisionAttempt => ({
    approvalId,
    decision,
    principal,
    agent: () => engine.agent(agent),
  })

  const originOf = ({ turn }: SessionState, approvalId: string): Event<'approval.requested'>['origin'] =>
    callOfApproval(turn, approvalId)?.approval?.requested.origin

  /** As it would be stored. `late`: its time is over, which is stored instead. */
  const checked = (read: Read, principal: Principal): Promise<Read & { readonly late: boolean }> =>
    current(async ({ state }) => {
      const origin = originOf(state, read.approvalId)
      if (origin === undefined) return { ...read, ...(await checkDecision(state, deciding(state, read, principal))) }
      await child(origin.session).check({ approvalId: origin.approvalId, decision: read.decision }, principal)
      return { ...read, late: false }
    })

  /** In one append. Undefined: the time of the only one was over. */
  async function store(own: readonly Read[], principal: Principal): Promise<SubmittedDecision | undefined> {
    const { turn } = await current(({ state }) => state)
    const submitted = await bring((draft): SubmittedDecision | undefined => {
      const after = draft.state.seq
      const turns = own.map((it) => resolveApproval(draft, deciding(draft.state, it, principal)))
      const [turnId] = turns
      if (own.length > 1 && turns.includes(undefined)) throw approvalExpired()
      return turnId === undefined ? undefined : { turnId, accepted: 'started', after }
    })
    for (const { approvalId, decision } of own) {
      const { reason, arguments: edited } = decision
      const answer: ApprovalAnswer =
        submitted === undefined
          ? { verdict: 'expired' }
          : {
              verdict: decision.verdict,
              principal,
              ...defined({ reason }),
              ...(edited !== undefined && { arguments: { ...edited } }),
            }
      await answerAbove(engine, key, turn?.delegation, { session: key.session, approvalId }, answer)
      // The decision is stored: if this fails, the worker of the call repeats it first.
      if (submitted !== undefined)
        await storeRememberedRule(engine.files, key.tenant, turn!.principal, { ...decision, principal }).catch(() => {})
    }
    return submitted
  }

  /** The child decides, with all its own checks; the requests made on its behalf receive the same decision. */
  async function hand({ approvalId, decision }: Read, principal: Principal): Promise<SubmittedDecision> {
    const { origin, ...here } = await current(({ state }) => ({
      origin: originOf(state, approvalId)!,
      turnId: state.turn!.turnId,
      after: state.seq,
      accepted: 'started' as const,
    }))
    try {
      await child(origin.session).decide([{ approvalId: origin.approvalId, decision }], principal)
    } catch (error) {
      // The child may have its decision already while the copy here is missing.
      await current((log) => answerLate(engine, log))
      throw error
    }
    return here
  }

  return {
    async decide(all, principal) {
      if (!Array.isArray(all) || all.some((it) => !isObject(it)))
        throw new OxbowError(
          'decision_invalid',
          'The decisions must be a list of { approvalId, decision }. Nothing was decided.',
        )
      const read = all.map(({ approvalId, decision }): Read => ({ approvalId, decision: readDecision(decision) }))
      const ids = read.map((it) => it.approvalId)
      const twice = ids.find((it, index) => ids.indexOf(it) !== index)
      if (ids.length === 0 || twice !== undefined)
        throw new OxbowError(
          'decision_invalid',
          `${twice === undefined ? 'There is no decision' : `Two decisions are about ${twice}`}. Nothing was decided.`,
        )
      const rising = await current(({ state }) => ids.filter((it) => originOf(state, it) !== undefined))
      // It is also checked where it arose; if it is already decided there, the decision is copied here.
      if (read.length === 1 && rising.length === 1) return hand(read[0]!, principal)
      const fit = []
      for (const it of read) fit.push(await checked(it, principal))
      if (fit.length > 1 && fit.some((it) => it.late)) throw approvalExpired()
      const own = fit.filter((it) => !rising.includes(it.approvalId))
      const stored = own.length === 0 ? undefined : await store(own, principal)
      if (own.length > 0 && stored === undefined) throw approvalExpired()
      const handed: SubmittedDecision[] = []
      for (const it of fit.filter((one) => rising.includes(one.approvalId))) handed.push(await hand(it, principal))
      return stored ?? handed[0]!
    },
    async check({ approvalId, decision }, principal) {
      if ((await checked({ approvalId, decision: readDecision(decision) }, principal)).late) throw approvalExpired()
    },
  }
}
