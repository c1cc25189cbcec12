// Files of sessions, with compare-and-set on their version.

import { crc32 } from 'node:zlib'
import type { Files, SessionKey } from '@oxbow/core'
import { assertKey, assertName } from '../keys.ts'
import type { Database } from './database.ts'
import { damaged } from './errors.ts'

const PAGE = 500

export function postgresFiles(database: Database): Files {
  const { name, schema } = database
  const owned = 'tenant = $1 AND usr = $2 AND session = $3'
  const values = (owner: SessionKey, path: string, what = 'path'): string[] => {
    database.assertOpen()
    assertKey(owner)
    assertName(path, what)
    return [owner.tenant, owner.user, owner.session, path]
  }
  return {
    async get(owner, path) {
      const [row] = await database.query<{ data: Buffer; version: string; sum: string }>(
        `SELECT data, version, sum FROM ${schema}.files WHERE ${owned} AND path = $4 AND data IS NOT NULL`,
        values(owner, path),
      )
      if (row === undefined) return undefined
      if (Number(row.sum) !== crc32(row.data))
        throw damaged(name, `the file ${path} of session ${owner.session} has a wrong checksum`)
      return { data: new Uint8Array(row.data), version: Number(row.version) }
    },
    async put(owner, path, data, ifVersion) {
      const copy = Buffer.from(data)
      const [row] = await database.query<{ version: string }>(
        `INSERT INTO ${schema}.files AS f (tenant, usr, session, path, version, sum, data)
         SELECT $1, $2, $3, $4, 1, $5, $6
         WHERE $7::bigint IS NULL OR $7 = 0 OR EXISTS (SELECT FROM ${schema}.files WHERE ${owned} AND path = $4)
         ON CONFLICT (tenant, usr, session, path) DO UPDATE
         SET version = f.version + 1, sum = excluded.sum, data = excluded.data
         WHERE $7 IS NULL OR $7 = CASE WHEN f.data IS NULL THEN 0 ELSE f.version END
         RETURNING version`,
        [...values(owner, path), crc32(copy), copy, ifVersion ?? null],
      )
      return row && Number(row.version)
    },
    async list(owner, prefix) {
      const rows = await database.query<{ path: string; bytes: number; version: string }>(
        `SELECT path, length(data) AS bytes, version FROM ${schema}.files
         WHERE ${owned} AND path >= $4 AND starts_with(path, $4) AND data IS NOT NULL ORDER BY path`,
        values(owner, prefix, 'prefix'),
      )
      return rows.map(({ path, bytes, version }) => ({ path, bytes, version: Number(version) }))
    },
    async delete(owner, path) {
      await database.query(`UPDATE ${schema}.files SET data = NULL WHERE ${owned} AND path = $4`, values(owner, path))
    },
    async *owners({ tenant, user } = {}) {
      database.assertOpen()
      for (let after = ['', '', '']; ; ) {
        const rows = await database.query<{ tenant: string; usr: string; session: string }>(
          `SELECT DISTINCT tenant, usr, session FROM ${schema}.files
           WHERE data IS NOT NULL AND (tenant, usr, session) > ($1, $2, $3)
             AND ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR usr = $5)
           ORDER BY tenant, usr, session LIMIT ${PAGE}`,
          [...after, tenant ?? null, user ?? null],
        )
        for (const it of rows) yield { tenant: it.tenant, user: it.usr, session: it.session }
        if (rows.length < PAGE) return
        const last = rows.at(-1)!
        after = [last.tenant, last.usr, last.session]
      }
    },
    async erase(owner) {
      const rows = await database.query<{ present: boolean }>(
        `DELETE FROM ${schema}.files WHERE ${owned} RETURNING data IS NOT NULL AS present`,
        values(owner, '').slice(0, 3),
      )
      return rows.filter((it) => it.present).length
    },
  }
}
