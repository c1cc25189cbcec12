import { hash } from 'node:crypto'

/** A retry that names no session must find the one that the first attempt opened. */
export const sessionForRetry = (user: string, retryKey: string): string =>
  `s-${hash('sha256', JSON.stringify([user, retryKey])).slice(0, 32)}`
