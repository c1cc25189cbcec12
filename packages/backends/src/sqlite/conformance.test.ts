import { backendConformance } from '@oxbow/testing/conformance'
import { test } from 'vitest'
import { open } from './open.fixture.ts'

backendConformance({ name: 'sqlite', test, open, processes: new URL('./open.fixture.ts', import.meta.url) })
