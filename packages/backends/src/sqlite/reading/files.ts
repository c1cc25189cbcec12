import type { Files } from '@oxbow/core'
import { assertKey, assertName } from '../../keys.ts'
import type { Context } from '../context.ts'
import { Damage } from '../file/session-row.ts'
import { dataSum } from '../file/sums.ts'

export function sqliteFiles({ db, writer, guard }: Context): Files {
  const owned = 'tenant = ? AND user = ? AND session = ? AND data IS NOT NULL'
  const readFile = db.prepare(`SELECT data, version, sum FROM files WHERE ${owned} AND path = ?`)
  // substr, because LIKE and GLOB would interpret wildcards in a name.
  const listFiles = db.prepare(
    `SELECT path, length(data) AS bytes, version FROM files
     WHERE ${owned} AND path >= ?4 AND substr(path, 1, length(?4)) = ?4 ORDER BY path`,
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
  }
}
