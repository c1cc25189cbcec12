import { test } from 'vitest'
import { backendConformance } from '../conformance/index.ts'
import { open } from './open.fixture.ts'

backendConformance({ name: 'sqlite', test, open, processes: new URL('./open.fixture.ts', import.meta.url) })
