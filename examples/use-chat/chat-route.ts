// A route for the AI SDK's useChat. The session keeps the conversation: of the body, only the new text and files and the
// answers to approvals are used. `user` comes from your own sign-in, never from the body.
import { type Engine, OxbowError, openApprovals, toResponse, uiInput, userId } from 'oxbow'

export async function chatRoute(engine: Engine, request: Request, user: string): Promise<Response> {
  try {
    return await answer(engine, await request.json().catch(() => undefined), user)
  } catch (error) {
    // A mistake of the client; any other error is a fault of the server.
    if (error instanceof OxbowError) return new Response(error.message, { status: 400 })
    throw error
  }
}

async function answer(engine: Engine, body: unknown, user: string): Promise<Response> {
  const chat = (body as { id?: unknown } | null | undefined)?.id
  if (typeof chat !== 'string' || chat === '') return new Response('id is required.', { status: 400 })
  const session = engine.session({ user: userId(user), session: userId(chat) })

  const { input, decisions } = uiInput(body)
  if (decisions.length > 0) {
    const { turnId, after } = await session.decideAll(
      decisions.map(({ approvalId, approved }) => ({
        approvalId,
        decision: { verdict: approved ? ('approved' as const) : ('denied' as const) },
      })),
    )
    return toResponse(session.attach(turnId), { format: 'ui-messages', after })
  }
  if (input.length === 0) return new Response('The last message is empty.', { status: 400 })
  // useChat sends decisions only while the request is the last message. A message in place of a decision therefore
  // withdraws the request: otherwise the new turn would wait for a decision that cannot come.
  const { turn } = await session.state()
  if (turn !== undefined && openApprovals(turn).length > 0)
    await session.interrupt({ turnId: turn.turnId, reason: 'The user sent a message instead of deciding.' })
  return toResponse(session.stream(input), { format: 'ui-messages' })
}
