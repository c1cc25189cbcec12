import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { recordPoints } from './index.ts'

const passing = ['a', 'b', 'a', 'c', 'a']

function child(point: string, hit: number) {
  const code = `
    import { killAt } from './index.ts'
    const faultPoint = killAt(${JSON.stringify(point)}, ${hit})
    for (const point of ${JSON.stringify(passing)}) {
      console.log(point)
      faultPoint(point)
    }
    console.log('end')`
  const { signal, stdout } = spawnSync(
    process.execPath,
    ['--conditions=oxbow-source', '--input-type=module-typescript', '--eval', code],
    { cwd: import.meta.dirname, encoding: 'utf8' },
  )
  return { signal, passed: stdout.trim().split('\n') }
}

test('the process dies by SIGKILL when it passes the point for the n-th time', () => {
  expect(child('a', 2)).toEqual({ signal: 'SIGKILL', passed: ['a', 'b', 'a'] })
  expect(child('b', 1)).toEqual({ signal: 'SIGKILL', passed: ['a', 'b'] })
})

test('a point that is passed fewer times does not kill the process', () => {
  expect(child('a', 4)).toEqual({ signal: null, passed: [...passing, 'end'] })
})

test('the recorder lists the points in order and counts them', () => {
  const { faultPoint, passed, hits } = recordPoints()
  passing.forEach(faultPoint)
  expect(passed).toEqual(passing)
  expect([...hits]).toEqual([
    ['a', 3],
    ['b', 1],
    ['c', 1],
  ])
})
