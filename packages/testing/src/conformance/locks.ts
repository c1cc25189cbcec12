import assert from 'node:assert/strict'
import { type ConformanceCheck, eventually } from './support.ts'

export function lockConformance(check: ConformanceCheck): void {
  check('a lock has one holder, and each holder a greater token', async ({ locks }) => {
    const tries = await Promise.all(Array.from({ length: 5 }, () => locks.acquire('box', 60_000)))
    const held = tries.filter((it) => it !== undefined)
    assert.equal(held.length, 1)
    assert.notEqual(await locks.acquire('another box', 60_000), undefined)
    await held[0]!.release()
    const next = await locks.acquire('box', 60_000)
    assert.ok(next!.token > held[0]!.token)
    // A release that comes late takes nothing from the next holder.
    await held[0]!.release()
    assert.equal(await locks.acquire('box', 60_000), undefined)
    assert.equal(await held[0]!.renew(60_000), false)
    assert.equal(await next!.renew(60_000), true)
  })

  check('a lock whose time is over can be acquired, and its holder has lost it', async ({ locks }) => {
    const first = (await locks.acquire('box', 50))!
    await eventually('the end of the lock', async () => {
      const next = await locks.acquire('box', 60_000)
      return next !== undefined && next.token > first.token
    })
    assert.equal(await first.renew(60_000), false)
  })
}
