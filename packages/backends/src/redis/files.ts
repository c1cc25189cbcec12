// Files of sessions, with compare-and-set on their version.
import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type Files, OxbowError, type SessionKey } from '@oxbow/core'
import { assertKey, assertName, keyOfMap, mapKey } from '../keys.ts'
import type { Server } from './server.ts'

const PAGE = 500

export function redisFiles(server: Server): Files {
  const { key: keyOf } = server
  const owned = (owner: SessionKey, path: string, what = 'path'): { file: string; paths: string } => {
    server.assertOpen()
    assertKey(owner)
    assertName(path, what)
    return { file: keyOf('file', mapKey(owner), path), paths: keyOf('files', mapKey(owner)) }
  }
  return {
    async get(owner, path) {
      const { file } = owned(owner, path)
      const [version, sum, data] = await server.run((redis) => redis.hmgetBuffer(file, 'version', 'sum', 'data'))
      if (!data) return undefined
      if (Number(sum) !== crc32(data))
        throw new OxbowError(
          'journal_corrupt',
          `${server.name} is damaged: the file ${path} of session ${owner.session} has a wrong checksum. Restore a backup.`,
        )
      return { data: new Uint8Array(data), version: Number(version) }
    },
    async put(owner, path, data, ifVersion) {
      const { file, paths } = owned(owner, path)
      const copy = Buffer.from(data)
      const operation = keyOf('operation', randomUUID())
      const version = await server.run((redis) =>
        redis.oxbowPutFile(file, paths, operation, keyOf('file', 'last'), path, ifVersion ?? '', crc32(copy), copy),
      )
      return version === 0 ? undefined : version
    },
    async list(owner, prefix) {
      const { paths } = owned(owner, prefix, 'prefix')
      const range = prefix === '' ? (['-', '+'] as const) : ([`[${prefix}`, '+'] as const)
      const names = await server.run((redis) => redis.zrange(paths, range[0], range[1], 'BYLEX'))
      const found = names.filter((it) => it.startsWith(prefix))
      const rows = await server.run(async (redis) => {
        const pipeline = redis.pipeline()
        for (const it of found) {
          const { file } = owned(owner, it)
          pipeline.hget(file, 'version')
          pipeline.hstrlen(file, 'data')
        }
        return pipeline.exec()
      })
      return found.map((path, index) => ({
        path,
        bytes: Number(rows![index * 2 + 1]![1]),
        version: Number(rows![index * 2]![1]),
      }))
    },
    async delete(owner, path) {
      const { file, paths } = owned(owner, path)
      await server.run((redis) => redis.multi().del(file).zrem(paths, path).exec())
    },
    async *owners({ tenant, user } = {}) {
      server.assertOpen()
      const start = keyOf('files', '').slice(0, -2)
      const owners = new Set<string>()
      for (let cursor = '0'; ; ) {
        const [next, keys] = await server.run((redis) =>
          redis.scan(cursor, 'MATCH', `${literally(start)}*`, 'COUNT', 1_000),
        )
        for (const it of keys) owners.add(it.slice(it.indexOf(':', start.length) + 1))
        if (next === '0') break
        cursor = next
      }
      for (const it of owners) {
        const owner = keyOfMap(it)
        if ((tenant === undefined || owner.tenant === tenant) && (user === undefined || owner.user === user))
          yield owner
      }
    },
    async erase(owner) {
      const { paths } = owned(owner, '')
      const names = await server.run((redis) => redis.zrange(paths, '0', '-1'))
      for (let start = 0; start < names.length; start += PAGE) {
        const page = names.slice(start, start + PAGE)
        const files = page.map((it) => owned(owner, it).file)
        await server.run((redis) => redis.multi().unlink(files).zrem(paths, page).exec())
      }
      return names.length
    },
  }
}

/** Of a pattern, so that it matches itself. */
const literally = (text: string): string => text.replace(/[\\*?[\]^]/g, '\\$&')
