// The trusted part of AG-UI's RunAgentInput: the ids, the text of the last message, and answers to requests of this
// server.
import { z } from 'zod'
import { toId } from '../http/ids.ts'
import { id, messageText } from '../http/schemas.ts'
import type { Named } from '../principal.ts'

export interface ResumeEntry {
  readonly interruptId: string
  readonly status: 'resolved' | 'cancelled'
  readonly payload?: unknown
}

export interface RunCommand {
  readonly threadId: string
  readonly runId: string
  /** The same run of the same thread is the same turn; see `identified`. */
  readonly turnId: string
  /** The id of the last message. */
  readonly messageId: string
  /** The text of the last message, if it is from a user. */
  readonly text: string | undefined
  readonly resume: readonly ResumeEntry[]
  /** Results from the client, by the wire ids of their calls. Only results of calls that wait for the client count. */
  readonly results: ReadonlyMap<string, { readonly content: string; readonly failed: boolean }>
  /** Calls that the client knew when it wrote the last message. */
  readonly callsBefore: ReadonlySet<string>
  /** The original request, limited to the fields of the protocol. */
  readonly input: object
  /** Not part of the protocol; checked only to reject the name of another user. */
  readonly named: Named
}

const nameIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const nonBlank = z.string('must be a string').refine((it) => it.trim() !== '', 'must not be blank')

const resumeEntry = z.looseObject({
  interruptId: nonBlank,
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
})

/**
 * Earlier messages, tools, context, state and all other fields are accepted and ignored: the server keeps the history.
 */
export const runAgentInput = (maxMessageLength: number) =>
  z
    .looseObject({
      threadId: id,
      runId: nonBlank,
      messages: z.array(z.looseObject({ id: nonBlank, role: nonBlank, content: z.unknown().optional() })),
      resume: z.array(resumeEntry).max(100).nullish(),
    })
    .transform(({ userId, tenant, ...input }, context): RunCommand => {
      const { threadId, runId, messages, resume } = input
      const at = messages.length - 1
      // A client without history sends only answers.
      const { role, content } = messages[at] ?? {}
      const refuse = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['messages', at, field], message })
      const resumes = (resume ?? []).length > 0
      if (messages.length === 0 && !resumes)
        context.addIssue({ code: 'custom', path: ['messages'], message: 'must not be empty' })
      // A run with answers only has no new message: its last message is from the previous run.
      else if (role !== 'user' && role !== 'tool' && !resumes) refuse('role', LAST_IS_USER)
      let text: string | undefined
      if (role === 'user') {
        const parsed = messageText(maxMessageLength).safeParse(content)
        if (parsed.success) text = parsed.data
        else if (Array.isArray(content)) refuse('content', 'must be a string: content in parts is not supported')
        else if (!resumes) for (const issue of parsed.error.issues) refuse('content', issue.message)
      }
      const results: Map<string, { content: string; failed: boolean }> = new Map()
      for (const it of messages)
        if (it.role === 'tool' && typeof it.toolCallId === 'string' && typeof it.content === 'string')
          results.set(it.toolCallId, { content: it.content, failed: typeof it.error === 'string' && it.error !== '' })
      const callsBefore = new Set(messages.slice(0, at).flatMap((it) => callsOf(it.toolCalls)))
      const named = { userId: nameIn(userId), tenant: nameIn(tenant) }
      return {
        threadId,
        runId,
        turnId: toId(runId)!,
        messageId: messages[at]?.id ?? '',
        text,
        resume: resume ?? [],
        results,
        callsBefore,
        input,
        named,
      }
    })

export const LAST_IS_USER = 'the last message must be of role "user"'

const callsOf = (calls: unknown): string[] =>
  Array.isArray(calls) ? calls.flatMap((it) => (typeof it?.id === 'string' ? [it.id] : [])) : []
