// Imported before the writer: each commit takes as long as on a disk whose fsync takes SLOW_COMMIT_MS.
import { DatabaseSync } from 'node:sqlite'

const delayMs = Number(process.env.SLOW_COMMIT_MS)
const clock = new Int32Array(new SharedArrayBuffer(4))
const prepare = DatabaseSync.prototype.prepare

DatabaseSync.prototype.prepare = function (sql, ...rest) {
  const statement = prepare.call(this, sql, ...rest)
  if (sql !== 'COMMIT') return statement
  const run = statement.run.bind(statement)
  statement.run = () => {
    const result = run()
    Atomics.wait(clock, 0, 0, delayMs)
    return result
  }
  return statement
}
