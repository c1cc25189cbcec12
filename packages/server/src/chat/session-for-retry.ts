import { hash } from 'node:crypto'

/** The session id of a retry without one: it must find the session that the first attempt opened. */
export const sessionForRetry = (user: string, retryKey: string): string =>
  `s-${hash('sha256', JSON.stringify([user, retryKey])).slice(0, 32)}`
