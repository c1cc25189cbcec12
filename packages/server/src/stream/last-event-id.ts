import { HttpError } from '../http/errors.ts'
import type { AppContext } from '../http/route.ts'

/** The number of the last event that the reader has, from the query or the header. @throws HttpError 400 */
export function lastEventId(c: AppContext, after: string | undefined, name = 'after'): number | undefined {
  const value = after ?? c.req.header('last-event-id')
  if (value === undefined || value.trim() === '') return undefined
  if (/^\d{1,15}$/.test(value.trim())) return Number(value)
  throw new HttpError(400, 'invalid_request', `${name} (or Last-Event-ID) must be the number of an event, 0 or more.`)
}
