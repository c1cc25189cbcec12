// The audit log: a record of each judgement, decision and end of a call. Stored in the
// same transaction as the event, so that it cannot be missing.
import { isObject } from '../checks/fields.ts'
import type { Event, Principal } from '../events/types.ts'
import type { AuditRecord, SessionKey } from '../ports.ts'
import type { CallState, SessionState } from './state.ts'

/** Names of the arguments of a tool whose values must not be kept; undefined for a tool that is not known here. */
export type SecretsOf = (agent: string, tool: string) => readonly string[] | undefined

/** Characters kept of arguments that are not a JSON object. */
const MOST_UNREADABLE = 1_000

/** The record of an event, from the state after it; undefined for events that the audit log does not hold. */
export function auditOf(
  key: SessionKey,
  state: SessionState,
  event: Event,
  secretsOf: SecretsOf,
): AuditRecord | undefined {
  if (!isAudited(event)) return undefined
  const { turn } = state
  const call = turn?.calls.find((it) =>
    event.type === 'approval.resolved'
      ? it.approval?.requested.approvalId === event.approvalId
      : it.callId === event.callId,
  )
  if (turn === undefined || call === undefined) return undefined
  const { decided, approval } = call
  const asked = event.type === 'approval.resolved' ? approval?.requested : undefined
  // A request of another agent concerns that agent's tool, not the one that waits for it.
  const tool = asked?.tool ?? call.tool
  const agent = asked?.origin?.agents.at(-1) ?? state.agent
  const resolved = event.type === 'approval.resolved' ? event : approval?.resolved
  return {
    key,
    seq: event.seq,
    at: event.at,
    event: event.type,
    turnId: turn.turnId,
    callId: call.callId,
    tool,
    principal: withoutCredential(turn.principal),
    arguments: argumentsOf(call, event, secretsOf(agent, tool)),
    decision: event.type === 'approval.resolved' ? event.verdict : decided?.decision,
    rule: event.type === 'approval.resolved' ? approval?.requested.rule : decided?.rule,
    reason: event.type === 'approval.resolved' ? event.reason : decided?.reason,
    approver: resolved?.principal?.user,
    ...(event.type === 'external.resolved' && { broughtBy: event.principal.user }),
    ...(event.type === 'approval.resolved' && event.remember !== undefined && { remember: event.remember }),
    operationId: call.started?.operationId,
    status: event.type === 'call.finished' ? event.status : undefined,
  }
}

/** The part of a record that remains when its session is erased: who did what, when, and the outcome, without data. */
export const withoutData = ({ remember: _, ...record }: AuditRecord): AuditRecord => ({
  ...record,
  arguments: {},
  // Both may quote arguments.
  rule: undefined,
  reason: undefined,
  erased: true,
})

const withoutCredential = ({ credential: _, ...principal }: Principal): Principal => principal

type Audited = Event<Exclude<AuditRecord['event'], 'data.erased'>>

const isAudited = (event: Event): event is Audited =>
  event.type === 'call.decided' ||
  event.type === 'approval.resolved' ||
  event.type === 'external.resolved' ||
  event.type === 'call.finished'

function argumentsOf(
  { decided, approval, arguments: written }: CallState,
  event: Audited,
  secrets: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  // It is not known which of them are secret.
  if (secrets === undefined) return { hidden: REDACTED }
  const judged =
    event.type === 'approval.resolved' ? (event.arguments ?? approval?.requested.arguments) : decided?.arguments
  return withoutSecrets(judged ?? asWritten(written, secrets), secrets)
}

/** A call that is refused before anybody judges it: its arguments may be anything. */
function asWritten(text: string, secrets: readonly string[]): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return { ...value }
  } catch {
    // Told as it is.
  }
  return { unreadable: secrets.length === 0 ? text.slice(0, MOST_UNREADABLE) : REDACTED }
}

const REDACTED = '[redacted]'

/** A copy without the values of these names, at any depth. */
export const withoutSecrets = (
  given: Readonly<Record<string, unknown>>,
  secrets: readonly string[],
): Readonly<Record<string, unknown>> =>
  secrets.length === 0
    ? given
    : Object.fromEntries(
        Object.entries(given).map(([name, it]) => [name, secrets.includes(name) ? REDACTED : inside(it, secrets)]),
      )

function inside(value: unknown, secrets: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((it) => inside(it, secrets))
  if (typeof value !== 'object' || value === null) return value
  return withoutSecrets(value as Record<string, unknown>, secrets)
}
