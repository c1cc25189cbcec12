import type { Files } from '@oxbow/core'
import { assertKey, assertName } from '../../keys.ts'
import type { Context } from '../context.ts'
import { Damage } from '../file/session-row.ts'
import { dataSum } from '../file/sums.ts'

const PAGE = 500

export function sqliteFiles({ db, writer, guard }: Context): Files {
  const owned = 'tenant = ? AND user = ? AND session = ? AND data IS NOT NULL'
  const readFile = db.prepare(`SELECT data, version, sum FROM files WHERE ${owned} AND path = ?`)
  // substr, because LIKE and GLOB would interpret wildcards in a name.
  const listFiles = db.prepare(
    `SELECT path, length(data) AS bytes, version FROM files
     WHERE ${owned} AND path >= ?4 AND substr(path, 1, length(?4)) = ?4 ORDER BY path`,
  )
  const listOwners = db.prepare(
    `SELECT DISTINCT tenant, user, session FROM files WHERE data IS NOT NULL AND (tenant, user, session) > (?, ?, ?)
       AND tenant = coalesce(?, tenant) AND user = coalesce(?, user)
     ORDER BY tenant, user, session LIMIT ${PAGE}`,
  )
  return {
    async get(owner, path) {
      return guard(() => {
        assertKey(owner)
        assertName(path, 'path')
        const row = readFile.get(owner.tenant, owner.user, owner.session, path)
        if (row === undefined) return undefined
        const data = row.data as Uint8Array
        // A file without a checksum was stored before schema 3.
        if (row.sum !== null && row.sum !== dataSum(data))
          throw new Damage(`the file ${path} of session ${owner.session} has a wrong checksum`)
        return { data, version: Number(row.version) }
      })
    },
    async put(owner, path, data, ifVersion) {
      guard(() => {
        assertKey(owner)
        assertName(path, 'path')
      })
      // A copy, because the caller may reuse its buffer before the write is sent to the thread.
      const copy = new Uint8Array(data)
      const version = await writer.write(['putFile', owner.tenant, owner.user, owner.session, path, copy, ifVersion])
      return version === 0 ? undefined : version
    },
    async list(owner, prefix) {
      return guard(() => {
        assertKey(owner)
        assertName(prefix, 'prefix')
        const rows = listFiles.all(owner.tenant, owner.user, owner.session, prefix)
        return rows.map((row) => ({
          path: String(row.path),
          bytes: Number(row.bytes),
          version: Number(row.version),
        }))
      })
    },
    async delete(owner, path) {
      guard(() => {
        assertKey(owner)
        assertName(path, 'path')
      })
      await writer.write(['deleteFile', owner.tenant, owner.user, owner.session, path])
    },
    async *owners({ tenant, user } = {}) {
      for (let after = ['', '', '']; ; ) {
        const [afterTenant = '', afterUser = '', afterSession = ''] = after
        const rows = guard(() => listOwners.all(afterTenant, afterUser, afterSession, tenant ?? null, user ?? null))
        const owners = rows.map((it) => [String(it.tenant), String(it.user), String(it.session)] as const)
        for (const [ownTenant, ownUser, session] of owners) yield { tenant: ownTenant, user: ownUser, session }
        if (rows.length < PAGE) return
        after = [...owners.at(-1)!]
      }
    },
    async erase(owner) {
      guard(() => assertKey(owner))
      return writer.write(['eraseFiles', owner.tenant, owner.user, owner.session])
    },
  }
}
