// The id of an approval for clients: it says where the approval is, so that no index has to be kept. It proves nothing; who
// asks is checked against what stands there.
import type { SessionKey } from '@oxbow/core'
import { isId } from '@oxbow/core/internal'

export interface ApprovalPlace {
  readonly key: SessionKey
  readonly approvalId: string
}

export const publicApprovalId = ({ tenant, user, session }: SessionKey, approvalId: string): string =>
  Buffer.from(JSON.stringify([tenant, user, session, approvalId])).toString('base64url')

/** Undefined for whatever `publicApprovalId` did not write. */
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
