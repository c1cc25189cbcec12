import { expect, test } from 'vitest'
import { place } from '../cli.fixture.ts'

test('a stopped service exits even when something in it still holds a handle', async () => {
  const handle = 'data:text/javascript,setInterval(()=>{},1000000)'
  const service = place().start(['serve', '--port', '0'], {
    env: { NODE_OPTIONS: `--import=${handle}` },
    input: null,
  })
  await service.shows(/listens on (http:\S+)/)
  service.child.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
})
