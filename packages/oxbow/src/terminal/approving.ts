// Decides on approvals at the terminal: one question at a time, answered by input lines.

import {
  type ApprovalDecision,
  type Event,
  mayDecide,
  type Session,
  type SessionState,
  type Submitted,
} from '@oxbow/core'
import { inexactNumber, isObject, parseExact } from '@oxbow/core/internal'
import { publicApprovalId } from '@oxbow/server'
import { approvalCard, printable, type Style } from './transcript.ts'

type Requested = Event<'approval.requested'>

export interface Approving {
  /** Shows pending approvals. Resolves with whether the next line is an answer. */
  begin(): Promise<boolean>
  readonly asking: boolean
  /** Handles an answer. Resolves with the turn to watch once the last question is answered. */
  take(line: string): Promise<Pick<Submitted, 'turnId' | 'after'> | undefined>
}

interface Terminal {
  readonly style: Style
  print(line: string): void
  /** Asks for the next line, prefilled with `draft` for editing. */
  prompt(question: string, draft?: string): void
}

const CHOICES = 'Approve? [y]es [n]o [e]dit [r]emember: '

export function approving(session: Session, { style, print, prompt }: Terminal): Approving {
  /** The question that the next line answers. */
  let question: { readonly about: Requested; readonly kind: 'verdict' | 'reason' | 'edit' | 'remember' } | undefined
  let resumes: Pick<Submitted, 'turnId' | 'after'> | undefined

  const ask = (about: Requested): void => {
    question = { about, kind: 'verdict' }
    prompt(CHOICES)
  }

  async function next(): Promise<boolean> {
    question = undefined
    const own = { tenant: session.key.tenant, user: session.key.user }
    for (const it of await waiting(session)) {
      if (!mayDecide(it, own, await askerOf(session))) continue
      print(approvalCard(it, style, publicApprovalId(session.key, it.approvalId)))
      ask(it)
      return true
    }
    return false
  }

  async function decide(about: Requested, decision: ApprovalDecision): Promise<typeof resumes> {
    try {
      await session.decide(about.approvalId, decision)
    } catch (error) {
      print(style.red(`oxbow: ${(error as Error).message}`))
      const { code } = error as { code?: string }
      if (code === 'rule_invalid' || code === 'arguments_invalid' || code === 'arguments_denied') {
        ask(about)
        return undefined
      }
    }
    return (await next()) ? undefined : resumes
  }

  return {
    get asking() {
      return question !== undefined
    },
    async begin() {
      const { turn, seq } = await session.state()
      resumes = turn && { turnId: turn.turnId, after: seq }
      const own = { tenant: session.key.tenant, user: session.key.user }
      for (const it of await waiting(session))
        if (!mayDecide(it, own, await askerOf(session))) {
          print(approvalCard(it, style, publicApprovalId(session.key, it.approvalId)))
          const who = it.approver === undefined ? (await askerOf(session)).user : `a user with ${it.approver}`
          print(style.dim(`It is waiting for ${who}.`))
        }
      return next()
    },
    async take(line) {
      const { about, kind } = question!
      const text = line.trim()
      if (kind === 'reason') return decide(about, { verdict: 'denied', ...(text !== '' && { reason: text }) })
      if (kind === 'edit') {
        const edited = editedFrom(text)
        if ('arguments' in edited) return decide(about, { verdict: 'approved', ...edited })
        print(style.red(`${edited.problem} Nothing was decided.`))
        ask(about)
        return undefined
      }
      if (kind === 'remember') {
        const [, number, scope] = /^(\d+)\s*([su]?)$/.exec(text) ?? []
        const rule = about.suggestions[Number(number) - 1]
        if (rule !== undefined) {
          const all = scope === 'u' || !forSession(about)
          return decide(about, { verdict: 'approved', remember: { rule, scope: all ? 'user' : 'session' } })
        }
        print('Nothing was decided.')
        ask(about)
        return undefined
      }
      switch (text.toLowerCase()) {
        case 'y':
        case 'yes':
          return decide(about, { verdict: 'approved' })
        case 'n':
        case 'no':
          question = { about, kind: 'reason' }
          prompt('Reason (optional): ')
          return undefined
        case 'e':
        case 'edit':
          question = { about, kind: 'edit' }
          prompt('Arguments: ', JSON.stringify(about.arguments))
          return undefined
        case 'r':
        case 'remember':
          if (about.suggestions.length === 0) {
            print(`No rule can allow it in the future: ${printable(about.rule)} takes precedence.`)
            ask(about)
            return undefined
          }
          about.suggestions.forEach((it, index) => void print(`  ${index + 1}  ${printable(it)}`))
          question = { about, kind: 'remember' }
          prompt(
            forSession(about)
              ? 'Which rule? A number, and u for all your sessions (1, 1 u): '
              : 'Which rule, for all your sessions? A number: ',
          )
          return undefined
        default:
          ask(about)
          return undefined
      }
    },
  }
}

const forSession = ({ scopes }: Requested): boolean => scopes?.includes('session') ?? true

/** Pending approvals of a session, in the order of their calls. */
export const waiting = async (session: Session): Promise<Requested[]> => waitingIn(await session.state())

export function waitingIn({ turn }: Pick<SessionState, 'turn'>): Requested[] {
  return (turn?.calls ?? []).flatMap(({ approval, finished }) =>
    approval === undefined || approval.resolved !== undefined || finished !== undefined ? [] : [approval.requested],
  )
}

/** The principal of the waiting turn. */
const askerOf = async (session: Session) => (await session.state()).turn?.principal ?? session.key

function editedFrom(text: string): { arguments: Record<string, unknown> } | { problem: string } {
  let value: unknown
  try {
    value = parseExact(text)
  } catch (error) {
    return { problem: `This is not JSON: ${printable((error as Error).message)}.` }
  }
  if (!isObject(value)) return { problem: 'This is not a JSON object.' }
  const lost = inexactNumber(value)
  return lost === undefined
    ? { arguments: value }
    : { problem: `The number ${lost.source.slice(0, 60)} cannot be held exactly. Write it as a string.` }
}
