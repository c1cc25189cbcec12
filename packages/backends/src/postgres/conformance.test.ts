import { backendConformance } from '@oxbow/testing/conformance'
import { describe, test } from 'vitest'
import { drop, missing, open } from './open.fixture.ts'

describe.skipIf(missing !== undefined)(`B10: a back end on PostgreSQL${missing ? `: skipped, ${missing}` : ''}`, () => {
  backendConformance({
    name: 'postgres',
    test,
    open,
    processes: new URL('./open.fixture.ts', import.meta.url),
    drop,
  })
})
