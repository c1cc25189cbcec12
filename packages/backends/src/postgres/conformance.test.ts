import { test } from 'vitest'
import { backendConformance } from '../conformance/index.ts'
import { drop, missing, open } from './open.fixture.ts'

if (missing !== undefined && process.env.CI) throw new Error(missing)

backendConformance({
  name: 'postgres',
  test: test.skipIf(missing !== undefined),
  open,
  processes: new URL('./open.fixture.ts', import.meta.url),
  drop,
})
