import assert from 'node:assert/strict'
import { type ConformanceCheck, eventually } from './support.ts'

/** Longer than a notification of any database may be. */
const LONG = 'é'.repeat(20_000)

export function busConformance(check: ConformanceCheck): void {
  check('messages reach all subscribers of their topic, in order, whatever their length', async ({ bus }) => {
    const first: string[] = []
    const second: string[] = []
    const other: string[] = []
    const stops = [
      bus.subscribe('topic', (it) => first.push(it)),
      bus.subscribe('topic', (it) => second.push(it)),
      bus.subscribe('topic 2', (it) => other.push(it)),
    ]
    // A subscription may take a moment to reach the server: until then messages are lost.
    await eventually('the subscriptions', () => {
      bus.publish('topic', 'ping')
      bus.publish('topic 2', 'ping')
      return first.length > 0 && second.length > 0 && other.length > 0
    })
    const sent = ['1', LONG, '', '\u{1F402} "quoted" \\ \n', ...Array.from({ length: 50 }, (_, n) => `n${n}`)]
    for (const it of sent) bus.publish('topic', it)
    await eventually('the last message', () => first.at(-1) === 'n49' && second.at(-1) === 'n49')
    for (const seen of [first, second])
      assert.deepEqual(
        seen.filter((it) => it !== 'ping'),
        sent,
      )
    assert.deepEqual(new Set(other), new Set(['ping']))
    for (const stop of stops) stop()
  })

  check('the lag is measured, where messages leave the process', async ({ bus }) => {
    bus.publish('topic', 'ping')
    const isMeasured = (lag: number | undefined) => lag === undefined || (lag >= 0 && lag < 5_000)
    await eventually('a lag', () => {
      bus.publish('topic', 'ping')
      return isMeasured(bus.lagMs())
    })
  })

  check('a subscriber that has stopped hears nothing more', async ({ bus }) => {
    const heard: string[] = []
    const gone: string[] = []
    const stop = bus.subscribe('topic', (it) => gone.push(it))
    bus.subscribe('topic', (it) => heard.push(it))
    stop()
    await eventually('a message', () => {
      bus.publish('topic', 'later')
      return heard.length > 0
    })
    assert.deepEqual(gone, [])
  })
}
