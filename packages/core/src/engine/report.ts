// Errors that have no caller: the host gets them, with the reference that end users are shown.

import { randomUUID } from 'node:crypto'
import { defined } from '../checks/defined.ts'
import { OxbowError } from '../errors.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionKey } from '../ports.ts'

export type OnError = (error: unknown, context: { reference: string; session?: SessionKey; turnId?: string }) => void

/** Reports an error and returns its reference. */
export type Report = (error: unknown) => string

/** How errors in the work on a session are reported. */
export type ReportOf = (log: Pick<SessionLog, 'key'>, turnId?: string) => Report

export const reportTo =
  (onError: OnError): ReportOf =>
  ({ key }, turnId) =>
  (error) => {
    const reference = randomUUID()
    void onError(error, { reference, session: key, ...defined({ turnId }) })
    return reference
  }

/** The host's function, which must not end the work that it is informed about, whether it throws or rejects. */
export const guarded =
  (onError: OnError): OnError =>
  async (error, context) => {
    try {
      await (onError(error, context) as unknown)
    } catch (thrown) {
      console.error(`Oxbow, reference ${context.reference}: onError failed:`, thrown, 'It was called with:', error)
    }
  }

/** An OxbowError reaches the caller with its words; what has caused it does not. */
export const toStandardError: OnError = (error, { reference }) => {
  if (!(error instanceof OxbowError)) console.error(`Oxbow, reference ${reference}:`, error)
  else if (error.cause !== undefined) console.error(`Oxbow, reference ${reference}: ${error.code}:`, error.cause)
}
