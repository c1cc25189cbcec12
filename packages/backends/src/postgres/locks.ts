// Locks with fencing tokens, by the clock of the database.
import type { Locks } from '@oxbow/core'
import { assertName } from '../keys.ts'
import type { Database } from './database.ts'

export function postgresLocks(database: Database): Locks {
  const { schema } = database
  const until = (parameter: string) => `clock_timestamp() + ${parameter} * interval '1 millisecond'`
  return {
    async acquire(name, ttlMs) {
      database.assertOpen()
      assertName(name, 'lock')
      const [row] = await database.query<{ token: string }>(
        `INSERT INTO ${schema}.locks AS l (name, token, until) VALUES ($1, 1, ${until('$2::float8')})
         ON CONFLICT (name) DO UPDATE SET token = l.token + 1, until = excluded.until
         WHERE l.until <= clock_timestamp() RETURNING token`,
        [name, ttlMs],
      )
      if (row === undefined) return undefined
      const token = Number(row.token)
      return {
        token,
        async renew(ms) {
          const renewed = await database.query(
            `UPDATE ${schema}.locks SET until = ${until('$3::float8')}
             WHERE name = $1 AND token = $2 AND until > clock_timestamp() RETURNING 1`,
            [name, token, ms],
          )
          return renewed.length === 1
        },
        async release() {
          await database.query(`UPDATE ${schema}.locks SET until = '-infinity' WHERE name = $1 AND token = $2`, [
            name,
            token,
          ])
        },
      }
    },
  }
}
