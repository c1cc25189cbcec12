// AG-UI's RunAgentInput, as far as this server trusts it: the ids, and the text of the last message.
import { z } from 'zod'
import { toId } from '../chat.ts'
import { id, messageText } from '../http/schemas.ts'
import type { Named } from '../principal.ts'

export interface RunCommand {
  readonly threadId: string
  readonly runId: string
  /** The same run of the same thread is the same turn. */
  readonly turnId: string
  readonly text: string
  /** Not part of the protocol; only looked at to refuse somebody else's name. */
  readonly named: Named
}

const nameIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const nonBlank = z.string('must be a string').refine((it) => it.trim() !== '', 'must not be blank')

/** Earlier messages, tools, context, state and the rest are accepted and ignored: the server keeps the history. */
export const runAgentInput = (maxMessageLength: number) =>
  z
    .looseObject({
      threadId: id,
      runId: nonBlank,
      messages: z
        .array(z.looseObject({ id: nonBlank, role: nonBlank, content: z.unknown().optional() }))
        .min(1, 'must not be empty'),
    })
    .transform(({ threadId, runId, messages, userId, tenant }, context): RunCommand => {
      const at = messages.length - 1
      const { role, content } = messages[at]!
      const refuse = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['messages', at, field], message })
      if (role !== 'user') refuse('role', 'the last message must be of role "user"')
      const text = messageText(maxMessageLength).safeParse(content)
      if (Array.isArray(content)) refuse('content', 'must be a string: content in parts is not taken')
      else if (!text.success) for (const issue of text.error.issues) refuse('content', issue.message)
      return {
        threadId,
        runId,
        turnId: toId(runId)!,
        text: text.data ?? '',
        named: { userId: nameIn(userId), tenant: nameIn(tenant) },
      }
    })
