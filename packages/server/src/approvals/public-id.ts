// The public id of an approval encodes where the approval is, so no index is needed. It proves nothing: the caller's
// rights are checked against the stored approval.
import type { SessionKey } from '@oxbow/core'
import { isId } from '@oxbow/core/internal'

export interface ApprovalPlace {
  readonly key: SessionKey
  readonly approvalId: string
}

export const publicApprovalId = ({ tenant, user, session }: SessionKey, approvalId: string): string =>
  Buffer.from(JSON.stringify([tenant, user, session, approvalId])).toString('base64url')

/** Undefined for an id that `publicApprovalId` did not create. */
export function placeOfApproval(id: string): ApprovalPlace | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(id, 'base64url').toString())
    if (!Array.isArray(parts) || parts.length !== 4 || !parts.every(isId)) return undefined
    const [tenant, user, session, approvalId] = parts as [string, string, string, string]
    return { key: { tenant, user, session }, approvalId }
  } catch {
    return undefined
  }
}
