// A controller as Go programs write them, to try an API server with: it is what most controllers on a cluster are, and
// it speaks protobuf for built-in kinds whatever the server would like to hear.
//
//	goclient -kubeconfig FILE -namespace NAME
//
// It wins a leader election, watches ConfigMaps whole and Secrets by their metadata, and for the ConfigMap "order"
// creates a Deployment from Go types, patches its status, applies a ConfigMap server-side and records an Event. It
// then prints what it saw as one JSON object and ends with 0.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	patience = 20 * time.Second
	order    = "order"
)

// Report is what the program prints.
type Report struct {
	Image          string   `json:"image"`
	Replicas       int32    `json:"replicas"`
	Conditions     []string `json:"conditions"`
	AppliedData    string   `json:"appliedData"`
	AppliedManager string   `json:"appliedManager"`
	SecretLabels   []string `json:"secretLabels"`
}

type orders struct {
	client   client.Client
	recorder events.EventRecorder
	done     chan<- Report
}

// Reconcile carries out the order once its Secret was seen, too.
func (o *orders) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var configMap corev1.ConfigMap
	if request.Name != order {
		return reconcile.Result{}, nil
	}
	if err := o.client.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	secret := metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := o.client.Get(ctx, request.NamespacedName, &secret); err != nil {
		// Its metadata-only informer wakes this up.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	report := Report{}
	for key, value := range secret.Labels {
		report.SecretLabels = append(report.SecretLabels, key+"="+value)
	}
	steps := []func(context.Context, *corev1.ConfigMap, *Report) error{o.deploy, o.apply, o.record}
	for _, step := range steps {
		if err := step(ctx, &configMap, &report); err != nil {
			return reconcile.Result{}, err
		}
	}
	o.done <- report
	return reconcile.Result{}, nil
}

func (o *orders) deploy(ctx context.Context, from *corev1.ConfigMap, report *Report) error {
	replicas := int32(2)
	labels := map[string]string{"app": from.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: from.Name, Namespace: from.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: from.Data["image"]}}},
			},
		},
	}
	if err := ctrl.SetControllerReference(from, deployment, o.client.Scheme()); err != nil {
		return err
	}
	if err := o.client.Create(ctx, deployment); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := o.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	ordered := appsv1.DeploymentCondition{Type: "Ordered", Status: corev1.ConditionTrue, Reason: "ByGo"}
	others := slices.DeleteFunc(deployment.Status.Conditions, func(condition appsv1.DeploymentCondition) bool {
		return condition.Type == ordered.Type
	})
	deployment.Status.Conditions = append(others, ordered)
	if err := o.client.Status().Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return err
	}
	report.Image = deployment.Spec.Template.Spec.Containers[0].Image
	report.Replicas = *deployment.Spec.Replicas
	for _, condition := range deployment.Status.Conditions {
		// On a cluster the Deployment controller adds its own.
		if condition.Reason == "ByGo" {
			report.Conditions = append(report.Conditions, string(condition.Type))
		}
	}
	return nil
}

func (o *orders) apply(ctx context.Context, from *corev1.ConfigMap, report *Report) error {
	configuration := corev1ac.ConfigMap(from.Name+"-applied", from.Namespace).WithData(map[string]string{"by": "go"})
	if err := o.client.Apply(ctx, configuration, client.FieldOwner("goclient"), client.ForceOwnership); err != nil {
		return err
	}
	var applied corev1.ConfigMap
	key := client.ObjectKey{Namespace: from.Namespace, Name: from.Name + "-applied"}
	if err := o.client.Get(ctx, key, &applied); err != nil {
		return err
	}
	report.AppliedData = applied.Data["by"]
	for _, entry := range applied.ManagedFields {
		report.AppliedManager = fmt.Sprintf("%s/%s", entry.Manager, entry.Operation)
	}
	return nil
}

func (o *orders) record(_ context.Context, from *corev1.ConfigMap, _ *Report) error {
	o.recorder.Eventf(from, nil, corev1.EventTypeNormal, "Ordered", "Ordering", "carried out by Go")
	return nil
}

func run(ctx context.Context, kubeconfig, namespace string) (Report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Report{}, err
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection:                true,
		LeaderElectionID:              "goclient.kardinal.io",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return Report{}, err
	}
	done := make(chan Report, 16)
	reconciler := &orders{client: manager.GetClient(), recorder: manager.GetEventRecorder("goclient"), done: done}
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		WatchesMetadata(secret, &handler.EnqueueRequestForObject{}).
		Complete(reconciler)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	select {
	case report := <-done:
		if err := waitForEvent(ctx, manager.GetAPIReader(), namespace); err != nil {
			return Report{}, err
		}
		cancel()
		return report, <-ended
	case err := <-ended:
		return Report{}, errors.Join(errors.New("the manager ended before the order was carried out"), err)
	}
}

// waitForEvent returns when the recorder, which writes in the background, has written.
func waitForEvent(ctx context.Context, reader client.Reader, namespace string) error {
	for {
		var found corev1.EventList
		if err := reader.List(ctx, &found, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range found.Items {
			if event.Reason == "Ordered" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func main() {
	kubeconfig := flag.Lookup("kubeconfig")
	namespace := flag.String("namespace", "default", "where to work")
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	report, err := run(context.Background(), kubeconfig.Value.String(), *namespace)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		os.Exit(1)
	}
}
