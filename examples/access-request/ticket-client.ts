// The way to the ticket service. The operation id goes along, so that an answer that was lost can be asked for again.
import { type Reconciliation, ToolError } from 'oxbow'

export interface TicketRequest {
  readonly person: string
  readonly system: string
  readonly days: number
  readonly reason: string
}

export interface Tickets {
  /** @throws ToolError when nothing was submitted */
  submit(operationId: string, user: string, request: TicketRequest, signal: AbortSignal): Promise<unknown>
  find(operationId: string, user: string): Promise<Reconciliation>
}

export function ticketClient(url: string, token: string): Tickets {
  const call = (operationId: string, user: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}/tickets/${encodeURIComponent(operationId)}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'on-behalf-of': user, 'content-type': 'application/json' },
    })

  async function find(operationId: string, user: string): Promise<Reconciliation> {
    try {
      const answer = await call(operationId, user)
      if (answer.status === 404) return { status: 'not_done' }
      return answer.ok ? { status: 'done', result: await answer.json() } : { status: 'unknown' }
    } catch {
      return { status: 'unknown' }
    }
  }

  return {
    find,
    async submit(operationId, user, request, signal) {
      let answer: Response
      try {
        answer = await call(operationId, user, { method: 'PUT', body: JSON.stringify(request), signal })
      } catch (cause) {
        // It may have been stored before the connection broke: look before telling the model that it failed.
        const found = await find(operationId, user)
        if (found.status === 'done') return found.result
        throw new ToolError('The ticket service did not answer; nothing was submitted.', {
          cause,
        })
      }
      const body = (await answer.json()) as { error?: string }
      if (!answer.ok) throw new ToolError(`The ticket service refuses: ${body.error ?? answer.status}`)
      return body
    },
  }
}
