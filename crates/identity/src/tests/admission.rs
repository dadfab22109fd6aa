//! Who is let in, and who is not: certificates.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, SanType};
use rustls::CertificateError;
use time::OffsetDateTime;

use super::*;
use crate::{CLOCK_SKEW, CredentialsError, MAX_CHAIN_BYTES, NameError};

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

#[test]
fn processes_of_a_job_know_each_other() {
    let authority = authority();
    let (a, b) = (process(0), Identity::new("local", JOB, 7, 2).unwrap());
    let (ours, theirs) = (credentials(&authority, &a), credentials(&authority, &b));
    let (client, server) = handshake(ours.client_config(), theirs.server_config()).unwrap();
    assert_eq!(ours.peer(&client).unwrap(), b);
    assert_eq!(theirs.peer(&server).unwrap(), a);
    assert_eq!(
        ours.identify(client.peer_certificates().unwrap()).unwrap(),
        b
    );
}

#[test]
fn agents_believe_agents_and_processes_processes() {
    let authority = authority();
    let agent = |host| Identity::agent("local", JOB, host, 1).unwrap();
    let [a, b] = [agent(0), agent(1)].map(|who| credentials(&authority, &who));
    let (client, _) = handshake(a.client_config(), b.server_config()).unwrap();
    assert_eq!(a.peer(&client).unwrap(), agent(1));
    // The same numbers do not make a process an agent.
    let process = credentials(&authority, &Identity::new("local", JOB, 1, 1).unwrap());
    assert!(handshake(process.client_config(), b.server_config()).is_err());
    assert!(handshake(b.client_config(), process.server_config()).is_err());
    let text = agent(7).to_string();
    assert_eq!(text.parse::<Identity>().unwrap(), agent(7));
    assert_ne!(text, Identity::new("local", JOB, 7, 1).unwrap().to_string());
}

#[test]
fn only_where_gateways_are_do_processes_and_agents_believe_each_other() {
    let authority = authority();
    let gateway = Identity::agent("local", JOB, 1, 1).unwrap();
    let [one, two] = [1, 2].map(|rank| Identity::new("local", JOB, rank, 1).unwrap());
    let [agent, one, two] = [&gateway, &one, &two].map(|who| credentials(&authority, who));
    let [open_agent, open_one, open_two] =
        [&agent, &one, &two].map(|who| who.for_gateways().unwrap());
    let (client, _) = handshake(open_one.client_config(), open_agent.server_config()).unwrap();
    assert_eq!(open_one.peer(&client).unwrap(), gateway);
    assert!(handshake(open_agent.client_config(), open_agent.server_config()).is_ok());
    // A process among gateways believes no process, and elsewhere nothing has changed.
    assert!(handshake(open_one.client_config(), open_two.server_config()).is_err());
    assert!(handshake(open_agent.client_config(), one.server_config()).is_err());
    assert!(handshake(one.client_config(), agent.server_config()).is_err());
    assert!(handshake(one.client_config(), two.server_config()).is_ok());
}

#[test]
fn processes_certified_by_different_agents_know_each_other() {
    let launcher = authority();
    let agent = || Authority::from_secret(launcher.to_secret().as_bytes()).unwrap();
    let (a, b) = (agent(), agent());
    assert_eq!(a.certificate(), launcher.certificate());
    assert_eq!(a.certificate(), b.certificate());
    let (ours, theirs) = (credentials(&a, &process(0)), credentials(&b, &process(1)));
    handshake(ours.client_config(), theirs.server_config()).unwrap();
}

#[test]
fn the_process_of_another_authority_is_refused() {
    let other = credentials(&authority(), &process(1));
    let error = CertificateError::BadSignature;
    // It believes in its own authority: as a client it would refuse first.
    let honest = credentials(&authority(), &process(0));
    let (party, as_server) = handshake(honest.client_config(), other.server_config()).unwrap_err();
    assert_eq!((party, as_server), (Party::Client, error.into()));
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (ours, other) = (authority(), authority());
    let keys = Keys::generate().unwrap();
    let certificate = other.issue(honest(&process(1), &keys), &keys).unwrap();
    // Both authorities have the same name, so the signature is looked at.
    let wrong = impostor(&ours, keys, vec![certificate]);
    assert_refused(&wrong, &ours, &CertificateError::BadSignature);
}

#[test]
fn another_authority_does_not_get_in_by_showing_itself() {
    let (ours, other) = (authority(), Authority::new("local", [9; 16]).unwrap());
    let keys = Keys::generate().unwrap();
    let certificate = other.issue(honest(&process(1), &keys), &keys).unwrap();
    let wrong = impostor(&ours, keys, vec![certificate, other.certificate().to_vec()]);
    assert_refused(&wrong, &ours, &CertificateError::UnknownIssuer);
}

#[test]
fn the_process_of_another_job_is_refused_though_our_authority_signed() {
    let authority = authority();
    let other = Identity::new("local", [9; 16], 1, 0).unwrap();
    let wrong = changed(&authority, |params| {
        params.subject_alt_names = vec![uri(&other.to_string())];
    });
    assert_not_identified(&wrong, &authority, &IdentityError::OtherJob(other));
}

#[test]
fn the_process_of_another_cluster_is_refused_though_our_authority_signed() {
    let authority = authority();
    let peer = Identity::new("remote", JOB, 1, 0).unwrap();
    let wrong = changed(&authority, |params| {
        params.subject_alt_names = vec![uri(&peer.to_string())];
    });
    let ours = "local".into();
    assert_not_identified(
        &wrong,
        &authority,
        &IdentityError::OtherCluster { peer, ours },
    );
}

#[test]
fn an_expired_certificate_is_refused() {
    let authority = authority();
    let wrong = changed(&authority, |params| {
        params.not_after = OffsetDateTime::now_utc() - Duration::from_secs(1);
    });
    assert_refused(&wrong, &authority, &EXPIRED);
}

#[test]
fn a_certificate_that_is_not_yet_valid_is_refused() {
    let authority = authority();
    let wrong = changed(&authority, |params| {
        params.not_before = OffsetDateTime::now_utc() + Duration::from_secs(60);
    });
    assert_refused(&wrong, &authority, &NOT_YET_VALID);
}

#[test]
fn clocks_may_differ_by_five_minutes_and_no_more() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let at = |agent: SystemTime| {
        let certificate = authority.certify(&keys.request(), &process(1), agent, LIFETIME);
        Credentials::new(
            keys.clone(),
            certificate.unwrap(),
            authority.certificate().to_vec(),
        )
    };
    let now = SystemTime::now();
    at(now + CLOCK_SKEW - Duration::from_secs(30)).unwrap();
    let error = at(now + CLOCK_SKEW + Duration::from_secs(30)).unwrap_err();
    assert!(matches!(error, CredentialsError::Invalid(_)));
    assert!(error.to_string().contains("clocks"));
    at(now - LIFETIME + Duration::from_secs(30)).unwrap();
    at(now - LIFETIME - Duration::from_secs(30)).unwrap_err();
}

#[test]
fn a_self_signed_certificate_is_refused() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let certificate = honest(&process(1), &keys).self_signed(&keys).unwrap();
    let wrong = impostor(&authority, keys, vec![certificate.der().to_vec()]);
    assert_refused(&wrong, &authority, &CertificateError::UnknownIssuer);
}

#[test]
fn a_process_cannot_certify_another() {
    let authority = authority();
    let (signer, keys) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let params = honest(&process(1), &signer);
    let issued = authority.issue(params.clone(), &signer).unwrap();
    let issuer = Issuer::new(params, &signer);
    let forged = honest(&process(2), &keys)
        .signed_by(&keys, &issuer)
        .unwrap();
    let wrong = impostor(&authority, keys, vec![forged.der().to_vec(), issued]);
    assert_refused(&wrong, &authority, &CertificateError::UnknownIssuer);
}

#[test]
fn an_intermediate_authority_is_refused_though_our_authority_signed() {
    let authority = authority();
    let (signer, keys) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.serial_number = Some(1.into());
    let issued = authority.issue(params.clone(), &signer).unwrap();
    let issuer = Issuer::new(params, &signer);
    let forged = honest(&process(2), &keys)
        .signed_by(&keys, &issuer)
        .unwrap();
    let wrong = impostor(&authority, keys, vec![forged.der().to_vec(), issued]);
    assert_refused(&wrong, &authority, &CertificateError::UnknownIssuer);
}

#[test]
fn the_authority_s_own_certificate_is_no_process_s() {
    let authority = authority();
    let chain = vec![authority.certificate().to_vec()];
    let wrong = impostor(&authority, Keys::generate().unwrap(), chain);
    assert_not_identified(&wrong, &authority, &IdentityError::NotOneName);
}

#[test]
fn a_certificate_with_two_identities_is_refused() {
    let authority = authority();
    let wrong = changed(&authority, |params| {
        params.subject_alt_names.push(uri(&process(2).to_string()));
    });
    assert_not_identified(&wrong, &authority, &IdentityError::NotOneName);
}

#[test]
fn a_certificate_with_a_host_name_is_refused() {
    let authority = authority();
    let host = || SanType::DnsName("mizzen.invalid".try_into().unwrap());
    let only = changed(&authority, |params| params.subject_alt_names = vec![host()]);
    assert_not_identified(&only, &authority, &IdentityError::NotOneName);
    let too = changed(&authority, |params| params.subject_alt_names.push(host()));
    assert_not_identified(&too, &authority, &IdentityError::NotOneName);
}

#[test]
fn a_certificate_without_a_name_is_refused() {
    let authority = authority();
    let wrong = changed(&authority, |params| params.subject_alt_names.clear());
    assert_not_identified(&wrong, &authority, &IdentityError::NotOneName);
}

#[test]
fn a_certificate_with_a_malformed_identity_is_refused() {
    let authority = authority();
    let job = "00112233445566778899aabbccddeeff";
    let cases = [
        (format!("https://local/{job}/1/0"), NameError::Scheme),
        (format!("mizzen://LOCAL/{job}/1/0"), NameError::Cluster),
        (format!("mizzen://*/{job}/1/0"), NameError::Cluster),
        (format!("mizzen://local/{job}0/1/0"), NameError::Job),
        (format!("mizzen://local/{job}/-1/0"), NameError::Rank),
        (format!("mizzen://local/{job}/1/x"), NameError::Incarnation),
        (
            format!("mizzen://local/{job}/1/0?admin"),
            NameError::Incarnation,
        ),
        (format!("mizzen://local/{job}/1/0/0"), NameError::Fields),
        (
            format!("mizzen://local/{job}/1/{}", "0".repeat(900)),
            NameError::TooLong,
        ),
    ];
    for (text, why) in cases {
        let wrong = changed(&authority, |params| {
            params.subject_alt_names = vec![uri(&text)]
        });
        assert_not_identified(&wrong, &authority, &IdentityError::Name(why));
    }
}

#[test]
fn a_certificate_for_the_other_side_only_is_refused() {
    let authority = authority();
    let honest = credentials(&authority, &process(0));
    let only = |usage| {
        changed(&authority, |params| {
            params.extended_key_usages = vec![usage]
        })
    };
    let client = only(ExtendedKeyUsagePurpose::ClientAuth);
    handshake(client.client_config(), honest.server_config()).unwrap();
    let (party, error) = handshake(honest.client_config(), client.server_config()).unwrap_err();
    let wrong_purpose = || Error::InvalidCertificate(CertificateError::InvalidPurpose);
    assert_eq!((party, error), (Party::Client, wrong_purpose()));
    let server = only(ExtendedKeyUsagePurpose::ServerAuth);
    handshake(honest.client_config(), server.server_config()).unwrap();
    let (party, error) = handshake(server.client_config(), honest.server_config()).unwrap_err();
    assert_eq!((party, error), (Party::Server, wrong_purpose()));
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let authority = authority();
    let wrong = changed(&authority, |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    });
    assert_refused(&wrong, &authority, &CertificateError::InvalidPurpose);
}

#[test]
fn a_chain_of_five_certificates_is_refused() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let certificate = authority.issue(honest(&process(1), &keys), &keys).unwrap();
    let with = |others: usize| {
        let mut chain = vec![certificate.clone()];
        chain.resize(1 + others, authority.certificate().to_vec());
        impostor(&authority, keys.clone(), chain)
    };
    let honest = credentials(&authority, &process(0));
    handshake(with(3).client_config(), honest.server_config()).unwrap();
    let bytes = certificate.len() + 4 * authority.certificate().len();
    let why = IdentityError::Chain {
        certificates: 5,
        bytes,
    };
    assert_not_identified(&with(4), &authority, &why);
}

#[test]
fn a_chain_longer_than_sixteen_kibibytes_is_refused() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let certificate = authority.issue(honest(&process(1), &keys), &keys).unwrap();
    let padding = vec![0; MAX_CHAIN_BYTES + 1 - certificate.len()];
    let why = IdentityError::Chain {
        certificates: 2,
        bytes: MAX_CHAIN_BYTES + 1,
    };
    let wrong = impostor(&authority, keys, vec![certificate, padding]);
    assert_not_identified(&wrong, &authority, &why);
}

#[test]
fn the_certificate_of_another_s_key_is_refused() {
    let authority = authority();
    let victim = Keys::generate().unwrap();
    let stolen = authority
        .issue(honest(&process(1), &victim), &victim)
        .unwrap();
    let wrong = impostor(&authority, Keys::generate().unwrap(), vec![stolen]);
    assert_refused(&wrong, &authority, &CertificateError::BadSignature);
}
