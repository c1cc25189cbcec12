// A route for the AI SDK's useChat. The session keeps the conversation: of the body, only the new text and answers to approvals
// are used. `user` comes from your own sign-in, never from the body.
import { type Engine, toResponse, uiInput, userId } from 'oxbow'

export async function chatRoute(engine: Engine, request: Request, user: string): Promise<Response> {
  const body: unknown = await request.json()
  const chat = (body as { id?: unknown } | null)?.id
  if (typeof chat !== 'string') return new Response('id is required.', { status: 400 })
  const session = engine.session({ user: userId(user), session: userId(chat) })

  const { text, decisions } = uiInput(body)
  if (decisions.length > 0) {
    const { turnId, after } = await session.decideAll(
      decisions.map(({ approvalId, approved }) => ({
        approvalId,
        decision: { verdict: approved ? ('approved' as const) : ('denied' as const) },
      })),
    )
    return toResponse(session.attach(turnId), { format: 'ui-messages', after })
  }
  if (text === undefined || text.trim() === '') return new Response('The last message has no text.', { status: 400 })
  return toResponse(session.stream(text), { format: 'ui-messages' })
}
