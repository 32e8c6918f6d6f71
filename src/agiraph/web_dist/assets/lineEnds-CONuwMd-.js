import{li as e,ui as t}from"./frame-BhVsrcJ-.js";var n=(e,t)=>`draft.${e}.${t}`;function r(t,r){try{return JSON.parse(e(n(t,r))??`null`)}catch{return null}}var i=(e,r,i)=>t(n(e,r),i&&JSON.stringify(i)),a=/\r\n|\r|\n/g,o=e=>e.replace(a,`
`);function s(e,t){let n=e.match(a)??[],r=new Map;for(let e of n)r.set(e,(r.get(e)??0)+1);let i=[...r].sort((e,t)=>t[1]-e[1])[0]?.[0]??`
`,s=t.split(`
`);if(r.size<=1)return s.join(i);let c=o(e).split(`
`),l=0;for(;l<n.length&&l<s.length-1&&c[l]===s[l];)l++;let u=0;for(;u<n.length-l&&u<s.length-1-l&&c.at(-1-u)===s.at(-1-u);)u++;let d=e=>e<l?n[e]:s.length-1-e<=u?n[n.length-(s.length-1-e)]:i;return s.map((e,t)=>t<s.length-1?e+d(t):e).join(``)}export{i,s as n,r,o as t};