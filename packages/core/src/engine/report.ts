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
    onError(error, { reference, session: key, ...defined({ turnId }) })
    return reference
  }

export const toStandardError: OnError = (error, { reference }) => {
  if (!(error instanceof OxbowError)) console.error(`Oxbow, reference ${reference}:`, error)
}
