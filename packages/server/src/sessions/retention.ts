// Erases sessions that have been idle for longer than their tenant keeps them.
import { type Engine, eraseData } from '@oxbow/core'
import type { Config } from '../config/config.ts'

type Periods = Config['retention']

const DAY_MS = 86_400_000
const EVERY_MS = 3_600_000
/** One replica at a time; the lock of one that died is free again after this. */
const LOCK_MS = 600_000
/** Sessions that are looked at together; other work has its turn between them. */
const BATCH = 100

/** @returns how many sessions were erased */
export async function applyRetention(engine: Engine, periods: Periods, now = Date.now()): Promise<number> {
  let count = 0
  for (const [tenant, days] of periods.tenants) count += await eraseIdle(engine, { tenant }, days, () => true, now)
  return count + (await eraseIdle(engine, {}, periods.days, (tenant) => !periods.tenants.has(tenant), now))
}

async function eraseIdle(
  engine: Engine,
  within: { readonly tenant?: string },
  days: number,
  applies: (tenant: string) => boolean,
  now: number,
): Promise<number> {
  if (days === 0) return 0
  let count = 0
  let before = now - days * DAY_MS
  for (;;) {
    const page = await engine.sessions({ ...within, status: 'idle', before, limit: BATCH })
    for (const { key } of page) {
      if (!applies(key.tenant)) continue
      count += (await eraseData(engine, key, { user: 'retention' })).sessions
    }
    const last = page.at(-1)
    if (last === undefined) return count
    before = last.updatedAt
  }
}

export interface Retention {
  close(): void
}

/** Applies the periods now and then every hour, on one replica. */
export function startRetention(engine: Engine, periods: Periods, onError: (error: unknown) => void): Retention {
  const none = periods.days === 0 && [...periods.tenants.values()].every((it) => it === 0)
  if (none) return { close() {} }
  const apply = async (): Promise<void> => {
    const lock = await engine.backend.locks.acquire('retention', LOCK_MS)
    if (lock === undefined) return
    try {
      await applyRetention(engine, periods)
    } finally {
      await lock.release()
    }
  }
  const run = (): void => void apply().catch(onError)
  run()
  const timer = setInterval(run, EVERY_MS).unref()
  return { close: () => clearInterval(timer) }
}
