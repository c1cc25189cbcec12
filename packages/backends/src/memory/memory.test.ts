import { backendConformance } from '@oxbow/testing/conformance'
import { test } from 'vitest'
import { memory } from './index.ts'

backendConformance({ name: 'memory', test, open: async () => memory() })
